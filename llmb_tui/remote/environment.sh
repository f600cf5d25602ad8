# environment ENVIRONMENT WANTED EXACTLY USUAL NEWER PYTHONS STAMPS STAMP: make a Python environment with pip.
#
# WANTED is the version of Python: exactly that one if EXACTLY is `yes`, otherwise that or a newer one. USUAL are the minor
# versions to look for, NEWER the versions to use if none of them is found; PYTHONS is a directory for a Python that uv
# downloads. A complete environment is used as it is. A new one invalidates what was set up in another: STAMPS is removed.
environment() {
    environment=$1 wanted=$2 exactly=$3 usual=$4 newer=$5 pythons=$6 stamps=$7 stamp=$8
    unfinished=$dir/unfinished seen=
    alone
    if [ -e "$environment" ] && [ ! -e "$unfinished" ] && whole; then
        echo "The environment is there, with Python $version."
        note "$stamp"
        return
    fi
    : | put "$unfinished"
    away "$stamp" # of a removed environment: its Python appears long before pip
    away "$environment".old.*
    if [ -e "$environment" ]; then
        if [ ! -d "$environment/bin" ] && [ "$(ls -A "$environment")" ]; then
            echo "$environment is there, but is no Python environment."
            exit 1
        fi
        echo "The environment that is there is not whole, or has another Python: it is made anew."
        rename "$environment" "${environment##*/}.old.$owner"
        away "$environment.old.$owner"
    fi
    away "$stamps"
    fresh_folder "$(dirname "$environment")"
    make
    if ! whole; then
        echo "The environment that was made is not whole."
        exit 1
    fi
    away "$unfinished"
    note "$stamp"
}

whole() {
    fits "$environment/bin/python" "$usual $newer" && "$environment/bin/python" -m pip --version
}

make() {
    if find_python "$usual" || find_python "$newer"; then
        echo "The environment gets Python $version $where: $python"
        "$python" -m venv "$environment"
    elif base=$(conda_bases | head -n 1) && [ "$base" ]; then
        version=${usual##* }
        echo "The environment gets Python $version from $base/bin/conda, because nothing else has one that fits."
        "$base/bin/conda" create -y -q -p "$environment" "python=$version" pip
    else
        least=" or newer"
        if [ "$exactly" = yes ]; then least=; fi
        echo "No suitable Python: $wanted$least is needed, and neither a module, conda nor uv has it." \
            "Found: ${seen:-none}."
        exit 1
    fi
}

# find_python MINORS: set `python` to one of these minor versions, `version`, and `where` it is.
find_python() {
    [ "$1" ] && { on_path "$1" || in_conda "$1" || in_module "$1" || from_uv "$1"; }
}

on_path() {
    where="on PATH"
    for minor in $1; do
        if python=$(command -v "python$minor") && fits "$python" "$1"; then return; fi
    done
    python=$(command -v python3) && fits "$python" "$1"
}

in_conda() {
    where="of conda"
    for base in $(conda_bases); do
        python=$base/bin/python
        if fits "$python" "$1"; then return; fi
    done
    return 1
}

conda_bases() {
    for base in "$(conda info --base 2>/dev/null)" "${CONDA_EXE%/bin/conda}" \
        "$HOME"/miniconda3 "$HOME"/miniforge3 "$HOME"/mambaforge "$HOME"/anaconda3 \
        /opt/conda /opt/miniconda3 /opt/miniforge3 /opt/anaconda3; do
        if [ -x "$base/bin/conda" ]; then echo "$base"; fi
    done
}

# Only login shells know modules. A module's Python must also run without them, as it will in every job.
in_module() {
    modules=$(bash -lc 'module -t avail 2>&1' </dev/null 2>/dev/null | sed 's/[[:space:]]*([^)]*)//; s/[[:space:]]*$//' |
        grep -iE '^([^[:space:]]*/)?python[^/[:space:]]*/[0-9][^/[:space:]]*$')
    for minor in $1; do
        for module in $modules; do
            case ${module##*/} in "$minor" | "$minor"[.-]*) ;; *) continue ;; esac
            where="of module $module"
            python=$(bash -lc 'module load "$1" >/dev/null 2>&1; command -v python3' - "$module" </dev/null | tail -n 1)
            if fits "$python" "$1"; then return; fi
        done
    done
    return 1
}

from_uv() {
    where="from uv"
    uv=$(PATH=$PATH:$HOME/.local/bin:$HOME/.cargo/bin command -v uv) || return 1
    export UV_PYTHON_INSTALL_DIR="$pythons"
    for minor in $1; do
        if python=$("$uv" python find "$minor" 2>/dev/null) && fits "$python" "$1"; then return; fi
    done
    echo "uv fetches Python ${1%% *}."
    "$uv" python install "${1%% *}" && python=$("$uv" python find "${1%% *}") && fits "$python" "$1"
}

# fits PYTHON MINORS: true if it is one of these versions and the wanted one, and can make environments. Sets `version`,
# and records in `seen` what it found.
fits() {
    probe='
import sys
try:
    import ensurepip, venv
    makes = "yes"
except ImportError:
    makes = "no"
found, wanted = sys.version_info[:3], tuple(int(part) for part in sys.argv[1].split("."))
right = found[: len(wanted)] == wanted if sys.argv[2] == "yes" else found >= wanted
print("%d.%d.%d" % found, "yes" if right else "no", makes)'
    said=$("$1" -c "$probe" "$wanted" "$exactly" 2>/dev/null) || return 1
    version=${said%% *}
    known="$version, $1"
    case $said in
        *" yes yes") case " $2 " in *" ${version%.*} "*) return ;; esac ;;
        *" yes no") known="$known, without venv" ;;
    esac
    case $seen in *"($known)"*) ;; *) seen="$seen${seen:+ }($known)" ;; esac
    return 1
}
