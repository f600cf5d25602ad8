# Print the traces of a submission by submit.sh, behind status.sh. $2 is the script, $3 the prefix of its job's output file,
# which exists whatever happened to the submission. Prints
#
#     answer ID       the job, as sbatch reported it
#     output NAME     of a writing job: its id and `.out`
#
# and after a line `words` the end of sbatch's output.
sed -n 's/^\([0-9][0-9]*\)\(;.*\)\{0,1\}$/answer \1/p' answer 2>/dev/null
for output in "$3"_*.out; do
    echo "output ${output#"$3"_}"
done
echo "words"
tail -c 2000 refusal 2>/dev/null
exit 0
