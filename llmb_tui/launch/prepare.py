"""`prepare`: what a submission needs is looked for and put on the cluster. May be repeated."""

from __future__ import annotations

from llmb_tui.cluster.session import Session
from llmb_tui.errors import Trouble
from llmb_tui.launch.way import Preparation
from llmb_tui.text import clean

_NOT_INSTALLED, _NO_TOKEN = 3, 4

# Arguments: file with the token below the home directory or nothing, then four lists, each behind its length: what must
# be there, folders, links (path below the home directory, link to it, or an empty file where there is no such file) and
# copies (installed file, where it is copied to).
_PREPARE = f"""
[ -z "$1" ] || [ -s "$HOME/$1" ] || exit {_NO_TOKEN}
needed=$2
shift 2
while [ "$needed" -gt 0 ]; do
    [ -d "$1" ] || [ -s "$1" ] || {{ echo "$1" >&2; exit {_NOT_INSTALLED}; }}
    shift
    needed=$((needed - 1))
done
folders=$1
shift
while [ "$folders" -gt 0 ]; do
    mkdir -p "$1" || exit 1
    shift
    folders=$((folders - 1))
done
links=$1
shift
while [ "$links" -gt 0 ]; do
    if [ -s "$HOME/$1" ]; then ln -sfn "$HOME/$1" "$2"; else rm -f "$2" && : >"$2"; fi || exit 1
    shift 2
    links=$((links - 1))
done
while [ $# -gt 0 ]; do
    cp "$1" "$2.$$" && mv -f "$2.$$" "$2" || exit 1
    shift 2
done
"""


def prepare(session: Session, cluster: str, wanted: Preparation) -> None:
    """Make sure of everything that is wanted; nothing is started.

    Raises Trouble (exit code 1) where something is not installed or the token is not there, and where the folder of
    the run cannot be made.
    """
    words = [wanted.token, str(len(wanted.needed)), *wanted.needed, str(len(wanted.folders)), *wanted.folders]
    words += [str(len(wanted.links)), *(part for link in wanted.links for part in link)]
    words += [part for copy in wanted.copies for part in copy]
    done = session.run_script(_PREPARE, words)
    if done.exit_code == _NOT_INSTALLED:
        raise Trouble(
            f"Not installed on {cluster}: {clean(done.stderr).strip()}",
            "The job would wait in the queue only to fail.",
            "Install the same selection first.",
            exit_code=1,
        )
    if done.exit_code == _NO_TOKEN:
        raise Trouble(
            f"There is no Hugging Face token on {cluster}.",
            "The recipe's launch script needs one.",
            f"Give it among the keys: `llmb-tui secrets {cluster} --give hugging-face` asks for it.",
            exit_code=1,
        )
    if done.exit_code:
        raise Trouble(
            f"The folder of the run could not be made: {wanted.folder}",
            clean(done.stderr).strip(),
            "Free some space, or choose an install directory that you may write to.",
        )
    for path, text in wanted.files:
        session.write_file(path, text.encode())
