# belongings.sh DIRECTORY TOKEN MOST [REPOSITORY STEP]...: list what installs and runs have created below an install
# directory (needs lock.sh and inside.sh). Links are not followed; entries with unexpected names are only counted.
# Prints at most MOST entries, as
#
#     \036TOKEN KIND MINE OURS PATH      MINE and OURS are yes or no: owned by this user, made by one of our install steps
#
# then `\036TOKEN more COUNT` for the others, and for each active install step `\036TOKEN step NAME`.
top "$1" || exit 3
token=$2 left=$3 more=0
shift 3

thing() {
    if [ ! -e "$2" ] || [ -L "$2" ]; then return; fi
    if [ "$left" -le 0 ] || ! inside "$2"; then
        more=$((more + 1))
        return
    fi
    left=$((left - 1)) mine=no
    [ ! -O "$2" ] || mine=yes
    printf '\036%s %s %s %s %s\n' "$token" "$1" "$mine" "$3" "$2"
}

by_step() { if [ -d ".llmb-tui/steps/$1" ]; then echo yes; else echo no; fi; }

runs() {
    for run in "$1"/*/*; do
        if [ ! -d "$run" ] || [ -L "$run" ]; then continue; fi
        thing run "$run" yes
        for made in "$run"/*/code/nemo_experiments; do
            if [ ! -d "$made" ]; then continue; fi
            for saved in $(find "$made" -maxdepth 4 -type d -name checkpoints -prune 2>/dev/null | head -n 8); do
                thing checkpoint "$saved" yes
            done
        done
    done
}

for image in images/*.sqsh; do thing image "$image" "$(by_step "image-$(basename "$image" .sqsh)")"; done
for venv in venvs/*; do thing environment "$venv" "$(by_step "environment-${venv##*/}")"; done
for made in published/*/*; do
    case ${made##*/} in experiments* | results*) continue ;; esac
    recipe=${made%/*}
    thing repository "$made" "$(by_step "repository-${recipe##*/}")"
done
while [ $# -gt 1 ]; do
    thing repository "$1" "$(by_step "$2")"
    shift 2
done
for experiments in workloads/*/experiments published/*/experiments; do runs "$experiments"; done
for cache in .cache/huggingface .llmb-tui/python; do thing cache "$cache" yes; done
for cache in .llmb-tui/steps/*/cache; do thing cache "$cache" yes; done
for gone in ".llmb-tui/trash.$(id -u)"/* .llmb-tui/trash/*; do thing trash "$gone" yes; done
printf '\036%s more %s\n' "$token" "$more"
installing | while read -r step; do printf '\036%s step %s\n' "$token" "$step"; done
exit 0
