# Claim of a run's submission and its end, shared by submit.sh and launch.sh, behind group.sh. The current folder is that
# of the traces. It then contains claim (a dangling symbolic link whose target names the owner: user@host, process group,
# Unix time) and exit (exit code, Unix time). Nothing is ever done twice: a process that cannot create claim exits, and
# claim is never removed.

# claimed: true for the first caller, and never again.
claimed() {
    # A link exists with its target or not at all; a file could be left empty, and its owner would be unknown.
    ln -s "$(id -un)@$(uname -n) $(group_of "$$") $(date +%s)" claim 2>/dev/null
}

# ended CODE: record that the submission has ended.
ended() {
    echo "$1 $(date +%s)" >exit.new
    mv exit.new exit
}
