"""`PUBLISHED_RULES`: why a step of the published procedure failed, from what its programs said. Pure.

What the remote scripts say themselves comes first, then git, the model hub, pip and the setup scripts. The wording of
theirs may change between versions: matches are loose.
"""

from __future__ import annotations

from llmb_tui.launch.install_rule import AGAIN, rule

_BRING = (
    "Ask the administrators for a way out or a proxy (https_proxy), or bring {} to `offline` in the install directory."
)
_ELSE_DIRECT = "or choose the direct procedure"

PUBLISHED_RULES = (
    rule(
        r"^Commit \w+ is not in \S+",
        "The setup script takes a commit that the git host does not have: the release's commits for this GPU type may "
        "not be public.",
        f"Choose another GPU type, {_ELSE_DIRECT}.",
    ),
    rule(
        r"could not read (?:Username|Password)|Authentication failed for|Repository not found",
        "The git host asks for a login: the repository is not public, or has moved.",
        f"Ask NVIDIA for access, {_ELSE_DIRECT}.",
    ),
    rule(
        r"^This git is too old for what was brought",
        "Only git 2.31 or newer can be told to take bundles instead of the network.",
        "Make a newer git known (PATH in ~/.bashrc on the cluster), and install again.",
    ),
    rule(
        r"Remote branch \S+ not found",
        "The repository does not have the release's tag.",
        f"Where a bundle was brought, make it with all tags; otherwise the release was withdrawn: {_ELSE_DIRECT[3:]}.",
    ),
    rule(
        r"is no checkout of|is no git checkout of|has local changes: ",
        "The recipe repository that is there is not the one of the release. It is left as it is.",
        "Move it away, or choose another install directory; then install again.",
    ),
    rule(
        r"detected dubious ownership",
        "The recipe repository that is there belongs to somebody else, and git does not touch it.",
        "Choose an install directory of your own.",
    ),
    rule(
        r"^No suitable Python: ",
        "No Python that the recipe's scripts can use was found.",
        "Install uv or Miniconda in your home directory there, or ask the administrators for a module of that Python; "
        "then install again.",
    ),
    rule(
        r"is there, but is no Python environment",
        "Something else is where the environment belongs. It is left as it is.",
        "Move it away, or choose another install directory; then install again.",
    ),
    rule(
        r"^The environment's Python does not run on ",
        "The nodes do not have the Python that the environment was made from.",
        "Have that Python on every node, such as from uv in your home directory; remove the environment, and install "
        "again.",
    ),
    rule(
        r"^There is no Hugging Face token on the cluster|Required variable HF_TOKEN",
        "What the recipe's scripts fetch from Hugging Face needs a token.",
        "Give your Hugging Face token for this cluster, and install again.",
        key_would_help="hugging-face",
    ),
    rule(
        r"GatedRepo|gated repo|(?:40[13]) Client Error.*huggingface|Access to model .* is restricted|"
        r"Invalid user token|Invalid username or password",
        "Hugging Face refused the token: it is wrong, or has no access to that model yet.",
        "Test the token for this cluster; where access is missing, ask for it on the model's page, and install again.",
        key_would_help="hugging-face",
    ),
    rule(
        r"429 Client Error",
        "Hugging Face limits how much may be fetched.",
        f"Wait some minutes. {AGAIN}",
    ),
    rule(
        r"fatal: unable to access|^\S+ could not be asked for commit|Could not read from remote repository",
        "The node cannot reach the git host.",
        _BRING.format("a bundle of each repository"),
    ),
    rule(
        r"RPC failed|early EOF|fetch-pack: |index-pack failed",
        "The download from the git host broke off.",
        AGAIN,
    ),
    rule(
        r"Failed to establish a new connection|NewConnectionError|NameResolutionError|ConnectTimeoutError|"
        r"ReadTimeoutError|ProxyError",
        "The node cannot reach the Python package index.",
        _BRING.format("a folder `wheels` with the packages"),
    ),
    rule(
        r"(?:gcc|g\+\+|cc|c\+\+|nvcc|cmake|ninja)\b.*(?:not found|No such file)|Python\.h: No such file|"
        r"command '\S*(?:gcc|cc|g\+\+|c\+\+|nvcc)' failed",
        "A package had to be built, and the node has no working compiler for it.",
        "Ask the administrators for gcc and Python's header files, or make a compiler module known in ~/.bashrc; then "
        "install again.",
    ),
    rule(
        r"Could not find a version that satisfies|No matching distribution found",
        "pip found no version of a package that fits this Python.",
        "Where a folder of wheels was brought, put the package there; otherwise look at the package index that pip is "
        "set to (pip config list). Then install again.",
    ),
    rule(
        r"ResolutionImpossible|conflicting dependencies",
        "pip found no set of packages that fit each other.",
        f"A package may have changed since the release: look at the step's log, {_ELSE_DIRECT}.",
    ),
    rule(
        r"subprocess-exited-with-error|metadata-generation-failed|Failed building wheel|Failed to build",
        "A package could not be built.",
        f"Look at the step's log on the cluster for what it lacks. {AGAIN}",
    ),
    rule(
        r"^error: patch failed|patch does not apply",
        "The recipe's patch does not fit NeMo as it was fetched.",
        f"Look at the step's log on the cluster. {AGAIN}",
    ),
    rule(
        r"Requires Bash 4\.2 or greater",
        "The node's bash is too old for the setup script.",
        f"Ask the administrators for a newer one, {_ELSE_DIRECT}.",
    ),
    rule(
        r"^(?:.*: line \d+: )?\w+: .*(?:is a required variable|Please set \w+|unbound variable)",
        "The setup script lacks a variable.",
        f"Look at the step's log on the cluster, {_ELSE_DIRECT}.",
    ),
    rule(
        r"^srun: (?:error|fatal): ",
        "Slurm refused what the setup script asked for, or ended it.",
        "Correct the account, the partition or the QOS in the cluster's profile, and install again.",
    ),
)
