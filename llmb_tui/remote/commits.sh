# commits STAMP [URL COMMIT]...: look for each commit by its id in the repository at that address.
commits() {
    stamp=$1
    shift
    scratch=$dir/scratch.git
    away "$scratch"
    git init -q --bare "$scratch"
    while [ $# -gt 0 ]; do
        echo "Looking for commit $2 of $1"
        # Without the files, if the server can leave them out.
        if said=$(commit "$1" "$2" --filter=tree:0) || said=$(commit "$1" "$2"); then
            echo "It is there."
        else
            printf '%s\n' "$said"
            case $said in
                *"not our ref"* | *"bad object"* | *"remote ref $2"*)
                    echo "Commit $2 is not in $1."
                    exit 1 ;;
                *"unadvertised object"*) echo "That server does not tell, so the setup script will find out." ;;
                *)
                    echo "$1 could not be asked for commit $2."
                    exit 1 ;;
            esac
        fi
        shift 2
    done
    away "$scratch"
    note "$stamp"
}

# commit URL COMMIT [OPTION]: fetch only that commit.
commit() {
    url=$1 id=$2
    shift 2
    LC_ALL=C git -C "$scratch" fetch -q --depth 1 "$@" "$url" "$id" 2>&1
}
