"""`Machine`: the login node of a rig: this machine in a separate mount, PID and host name namespace.

Inside, `/home`, `/run`, `/tmp`, `/usr/local/bin` and `/etc` are the rig's; everything else is this machine's, including
the repository and its Python. Nothing outside is changed, and everything started inside ends with
the namespace, at the latest when the process that holds the rig ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.kit.waiting import until

REPOSITORY = Path(__file__).parents[2]
HOST_NAME = "login01"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OUTSIDE = "nvcr.io authn.nvidia.com huggingface.co github.com"
"""Hosts that installs fetch from: inside they resolve to this machine, so that no real host is asked."""
USER_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/games"
OPERATOR, OPERATOR_ID, OPERATOR_GROUP = "operator", 4100, 100
PASSWORD = "cluster-pw-1"
# `openssl passwd -6 -salt llmbrig PASSWORD`
_PASSWORD_HASH = "$6$llmbrig$P4bsn6E0U3g.id0mBKvI2dXBrJp88DbKxWRTsSSYdcmtsWEH.VJVx13qIRTg3tuGAeaSt7AGPFShJuT/DPUJs1"

# Process 1 of the namespace. It ends when its input ends, and every process inside ends with it. Orphaned processes
# need no reaping, because SIGCHLD is ignored; a trap of sh does not survive its exec.
_INIT = f"""
set -e
root=$1
shift
exec 3<"$1" 4<"$2"  # may lie where something else is mounted in a moment
mount --make-rshared /  # what is mounted here later shows on the nodes
mount --bind "$root/home" /home
mount --bind "$root/etc" /etc
mount --bind "$root/bin" /usr/local/bin
mount -t tmpfs -o mode=755 rig /run
mkdir /run/munge /run/mysqld /run/sshd /run/rig
mount --bind "$root/knobs" /run/rig
mount -t tmpfs -o mode=1777 rig /tmp
fd=3
for path; do
    if [ ! -e "$path" ]; then
        mkdir -p "$path"
        mount --no-canonicalize --bind "/proc/self/fd/$fd" "$path"
    fi
    fd=4
done
exec 3<&- 4<&-
hostname {HOST_NAME}
echo ready
exec env --ignore-signal=CHLD cat >/dev/null
"""
_UNSHARE = "unshare --fork --kill-child --pid --mount-proc --mount --uts --propagation private"


class Daemon:
    """A program that runs in the namespace until it is stopped."""

    def __init__(self, name: str, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self._process = process
        self.pid = until(lambda: _only_child(process.pid) or self._ended(), f"{name} has started")
        """Process id on this machine, not in the namespace."""

    def _ended(self) -> int:
        if not self.alive:
            raise RuntimeError(f"{self.name} ended at once; see its file in the rig's log directory")
        return 0

    @property
    def alive(self) -> bool:
        """True until the program has ended."""
        return self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send the program a signal. It may have ended already."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def freeze(self) -> None:
        """Stop the program, so that it hangs."""
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the stopped program continue."""
        self.send(signal.SIGCONT)
        self._process.send_signal(signal.SIGCONT)  # nsenter stops together with its child

    def stop(self, deadline_s: float = 20.0) -> None:
        """End the program, gently first. It may have ended already."""
        if not self.alive:
            return
        self.send(signal.SIGTERM)
        ends = time.monotonic() + deadline_s
        while self.alive:
            if time.monotonic() > ends:
                self.send(signal.SIGKILL)
            self.thaw()  # repeatedly: nsenter may stop a moment after its child did
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.1)


class Machine:
    """The namespace. `root` is the rig's directory; `prepare` must run before `start`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._unshare: subprocess.Popen[bytes] | None = None
        self._pid = 0
        self._processes: list[subprocess.Popen[bytes]] = []

    def prepare(self) -> None:
        """Write the files that are mounted."""
        home, etc = self.root / "home" / OPERATOR, self.root / "etc"
        for folder in (home, *(self.root / name for name in ("etc", "bin", "knobs", "log"))):
            folder.mkdir(parents=True)
        # Linux ends the mount of a single file when this machine replaces the file below it, as adduser and apt do. The
        # copy is repeated if a file vanishes meanwhile.
        copy = ["cp", "--archive", "/etc/.", str(etc)]
        until(lambda: subprocess.run(copy, check=False, capture_output=True).returncode == 0, "/etc is copied")
        for name in ("slurm", "enroot"):
            shutil.rmtree(etc / name, ignore_errors=True)
        (etc / "slurm").mkdir()
        os.chown(home, OPERATOR_ID, OPERATOR_GROUP)
        home.chmod(0o755)
        lines = {
            "passwd": f"{OPERATOR}:x:{OPERATOR_ID}:{OPERATOR_GROUP}:the operator:/home/{OPERATOR}:/bin/bash",
            "shadow": f"{OPERATOR}:{_PASSWORD_HASH}:19000:0:99999:7:::",
            "group": "",
        }
        for name, line in lines.items():
            entries = [old for old in Path("/etc", name).read_text().splitlines() if old.split(":")[0] != OPERATOR]
            if name == "group":  # Debian has a group of that name without members
                entries = Path("/etc/group").read_text().splitlines()
            self._write(name, [*entries, line] if line else entries, 0o640 if name == "shadow" else 0o644)
        self._write("hosts", [f"127.0.0.1 localhost {HOST_NAME}", f"127.0.0.1 {OUTSIDE}"], 0o644)

    def _write(self, name: str, lines: Sequence[str], mode: int) -> None:
        path = self.root / "etc" / name
        path.write_text("".join(f"{line}\n" for line in lines))
        path.chmod(mode)

    def start(self) -> None:
        """Create the namespace. Raises RuntimeError with the message of unshare or mount."""
        with (self.root / "log" / "machine.log").open("wb") as log:
            self._unshare = subprocess.Popen(
                [*_UNSHARE.split(), "sh", "-c", _INIT, "sh", str(self.root), str(REPOSITORY), sys.base_prefix],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # ctrl+c in a terminal must reach the rig's process, not its parts
            )
        assert self._unshare.stdout
        if self._unshare.stdout.readline() != b"ready\n":
            self._unshare.wait()
            raise RuntimeError((self.root / "log" / "machine.log").read_text().strip())
        self._pid = _only_child(self._unshare.pid)

    def stop(self) -> None:
        """End the namespace and all its processes."""
        if self._unshare and self._unshare.stdin and self._unshare.stdout:
            self._unshare.stdin.close()
            self._unshare.wait()
            self._unshare.stdout.close()
            for process in self._processes:
                process.wait()
            self._unshare = None

    def inside(self, argv: Sequence[str], *, user: str = "root", cwd: str = "", **environment: str) -> list[str]:
        """The argument list that runs `argv` inside, like a login of that user, in the user's home directory."""
        home = "/root" if user == "root" else f"/home/{user}"
        variables = {"HOME": home, "USER": user, "LOGNAME": user, "SHELL": "/bin/bash", "LANG": "C.UTF-8"}
        variables |= {"PATH": SYSTEM_PATH if user == "root" else USER_PATH, **environment}
        become = [] if user == "root" else ["setpriv", "--reuid", user, "--regid", "users", "--init-groups"]
        clean = ["env", "-i", f"--chdir={cwd or home}", *(f"{name}={value}" for name, value in variables.items())]
        enter = ["nsenter", f"--target={self._pid}", "--mount", "--uts", "--pid", "--"]
        return [*enter, *become, *clean, *argv]

    def run(
        self,
        command: str | Sequence[str],
        *,
        user: str = "root",
        stdin: str = "",
        timeout_s: float = 120.0,
        cwd: str = "",
        check: bool = False,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run an argument list, or a line of sh, to its end."""
        argv = ["sh", "-c", command] if isinstance(command, str) else list(command)
        done = subprocess.run(
            self.inside(argv, user=user, cwd=cwd, **(env or {})),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if check and done.returncode:
            raise RuntimeError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def popen(self, argv: Sequence[str], *, user: str = "root", output: IO[bytes] | int) -> subprocess.Popen[bytes]:
        """Start a program; `output` receives its stdout and stderr."""
        process = subprocess.Popen(
            self.inside(argv, user=user),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    def daemon(self, name: str, argv: Sequence[str], *, user: str = "root") -> Daemon:
        """Start a program that keeps running; its output goes to `log/NAME.out`."""
        with (self.root / "log" / f"{name}.out").open("ab") as log:
            return Daemon(name, self.popen(argv, user=user, output=log))


def _only_child(pid: int) -> int:
    """Process id of the only child; 0 without a child."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    return int(children[0]) if children else 0
