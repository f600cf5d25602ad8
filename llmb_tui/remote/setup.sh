# setup REPOSITORY TAG SCRIPTS VENV TOKEN TERMINAL ENROOT GIT STAMPS STAMP [UNDO]... -- COMMAND...
#
# Run the setup script, which COMMAND starts, in SCRIPTS of the checkout of TAG, with the environment VENV (or none), and
# with the token in the file TOKEN below the home directory (or none). With TERMINAL, it has a terminal. ENROOT and GIT are
# the texts of programs that replace those of these names. UNDO are paths that are removed first: remains of an interrupted
# attempt on which the script would fail. STAMPS is removed, too.
setup() {
    repository=$1 tag=$2 scripts=$3 venv=$4 token=$5 terminal=$6
    shift 6
    enroot=$1 git=$2 stamps=$3 stamp=$4
    shift 4
    alone
    is_checkout "$repository" "$tag" || exit 1
    if [ "$venv" ] && ! "$venv/bin/python" -c ''; then
        echo "The environment's Python does not run on $(uname -n): $venv/bin/python"
        exit 1
    fi
    if [ "$token" ]; then
        if [ ! -s "$HOME/$token" ]; then
            echo "There is no Hugging Face token on the cluster."
            exit 1
        fi
        HF_TOKEN=$(cat "$HOME/$token")
        export HF_TOKEN
    fi
    away "$stamps"
    while [ "$1" != -- ]; do
        away "$1"
        shift
    done
    shift
    programs=$(private bin) # nodes run these as well
    rm -rf "$programs"
    (umask 077 && mkdir -p "$programs")
    printf '%s\n' "$enroot" >"$programs/enroot"
    printf '%s\n' "$git" >"$programs/git"
    chmod 755 "$programs"/*
    activate "$venv"
    PATH=$programs:$PATH
    cd "$scripts"
    if [ "$terminal" ]; then
        spawn='import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))'
        set -- "$venv/bin/python" -c "$spawn" "$@"
        export TERM=dumb
    fi
    "$@"
    rm -rf "$programs"
    away "$PIP_CACHE_DIR"
    note "$stamp"
}

# pins VENV STAMP REQUIREMENT...: install these additional packages into the environment.
pins() {
    venv=$1 stamp=$2
    shift 2
    alone
    activate "$venv"
    pip install "$@"
    away "$PIP_CACHE_DIR"
    note "$stamp"
}

# prove VENV DIRECTORY MODULE STAMP: import what the launch script starts, as it will be imported then. An environment that
# was made without an error can still lack what the recipe needs.
prove() {
    venv=$1 directory=$2 module=$3 stamp=$4
    alone
    activate "$venv"
    cd "$directory"
    echo "Importing $module in $directory, with $venv/bin/python."
    OPENBLAS_NUM_THREADS=1 "$venv/bin/python" -c 'import importlib, sys; importlib.import_module(sys.argv[1])' "$module"
    note "$stamp"
}

# constrain LINES: let pip and uv use only these versions, also for packages that are needed to build a package.
constrain() {
    versions=$dir/constraints.txt
    printf '%s\n' "$1" | put "$versions"
    export PIP_CONSTRAINT="$versions" PIP_BUILD_CONSTRAINT="$versions"
    export UV_CONSTRAINT="$versions" UV_BUILD_CONSTRAINT="$versions"
}

# activate VENV: protect the environment from settings of the user's shell. NeMo's own installer would install packages into
# the environment that CONDA_PREFIX names, which may be the user's conda base. Downloads of pip are kept until everything
# is installed, next to the log and not in the home directory; a partly written package does not count.
activate() {
    unset CONDA_PREFIX CONDA_DEFAULT_ENV PYTHONHOME PYTHONPATH PIP_TARGET PIP_PREFIX
    export PIP_CACHE_DIR="$dir/pip"
    if [ "$1" ]; then
        export VIRTUAL_ENV="$1"
        PATH=$1/bin:$PATH
        for package in "$1"/lib/python3*/site-packages/*.dist-info; do
            if [ -d "$package" ] && [ ! -f "$package/RECORD" ]; then away "$package"; fi
        done
        # The setup script may have been interrupted while it replaced pip.
        if ! "$1/bin/pip" --version >/dev/null 2>&1; then
            away "$1"/lib/python3*/site-packages/pip "$1"/lib/python3*/site-packages/pip-*.dist-info
            "$1/bin/python" -m ensurepip --default-pip
        fi
    fi
}
