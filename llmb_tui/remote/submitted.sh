# What a submission by submit.sh has left, behind status.sh. $2 is the script, $3 the beginning of its job's output,
# which is there whatever became of the submission. Prints
#
#     answer ID       the job, as sbatch named it
#     output NAME     of a job that writes: its id and `.out`
#
# and behind a line `words` the end of what sbatch said.
sed -n 's/^\([0-9][0-9]*\)\(;.*\)\{0,1\}$/answer \1/p' answer 2>/dev/null
for output in "$3"_*.out; do
    echo "output ${output#"$3"_}"
done
echo "words"
tail -c 2000 refusal 2>/dev/null
exit 0
