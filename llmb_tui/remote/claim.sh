# Who submits a run, and when that was over: what submit.sh and launch.sh have in common, behind group.sh. The folder of
# the traces is the current one. It then holds claim (a symbolic link to nowhere that says who did it: user@host,
# process group, Unix time) and exit (exit code, Unix time). Nothing is ever done twice: whoever cannot create claim
# leaves, and nobody removes it.

# claimed: true for the first who asks, and never again.
claimed() {
    # A link is there with its words or not at all; a file could be left empty, and then nobody would know whose it is.
    ln -s "$(id -un)@$(uname -n) $(group_of "$$") $(date +%s)" claim 2>/dev/null
}

# ended CODE: nothing more will come.
ended() {
    echo "$1 $(date +%s)" >exit.new
    mv exit.new exit
}
