"""slurmdbd and its MariaDB, which answer `sacct` and `sacctmgr`."""

from __future__ import annotations

import shutil
import subprocess

from tests.kit.waiting import until
from tests.rig.machine import OPERATOR, Daemon, Machine

ACCOUNT, OTHER_ACCOUNT = "llmbench", "llmb_other"
SHORT_QOS = "short"
"""QOS that allows one running job for each user, of at most 10 minutes and 8 GPUs. Larger jobs are refused at once."""

_CONF = """\
AuthType=auth/munge
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=slurm
DebugLevel=info
LogFile={log}/slurmdbd.log
PidFile=/run/rig/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
"""
# Half of these options make a small database fast. Nothing is flushed to the disk: a lost rig is never recovered.
_MARIADB = (
    "mariadbd --no-defaults --user=mysql --skip-networking --skip-log-bin --performance-schema=OFF"
    " --innodb-buffer-pool-size=64M --innodb-log-file-size=16M --innodb-lock-wait-timeout=900"
    " --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=OFF --innodb-flush-method=nosync"
    " --socket=/run/mysqld/mysqld.sock --pid-file=/run/mysqld/mysqld.pid"
)
_SQL = (
    "create database slurm_acct_db; create user slurm@localhost identified via unix_socket;"
    " grant all on slurm_acct_db.* to slurm@localhost;"
)


class Accounting:
    """The two daemons. `install` may run before the rest of the rig is up."""

    def __init__(self, machine: Machine, port: int) -> None:
        self._machine = machine
        self.port = port
        self._data = machine.root / "mysql"
        self._install: subprocess.Popen[bytes] | None = None
        self.database: Daemon
        self.slurmdbd: Daemon

    def install(self) -> None:
        """Start to create an empty database."""
        self._data.mkdir()
        shutil.chown(self._data, "mysql", "mysql")
        command = "mariadb-install-db --no-defaults --user=mysql --skip-test-db"
        command += f" --auth-root-authentication-method=socket --datadir={self._data}/data"
        with (self._machine.root / "log" / "mariadb-install.log").open("wb") as log:
            self._install = self._machine.popen(command.split(), output=log)

    def start(self) -> None:
        """Start both daemons, and wait until they answer."""
        machine = self._machine
        assert self._install
        if self._install.wait(120):
            raise RuntimeError(f"mariadb-install-db failed; see {machine.root}/log/mariadb-install.log")
        machine.run("chown mysql:mysql /run/mysqld", check=True)
        self.database = machine.daemon("mariadbd", [*_MARIADB.split(), f"--datadir={self._data}/data"])
        until(lambda: machine.run(["mariadb", "--no-defaults", "-e", "select 1"]).returncode == 0, "MariaDB answers")
        machine.run(["mariadb", "--no-defaults", "-e", _SQL], check=True)
        conf = machine.root / "etc" / "slurm" / "slurmdbd.conf"
        conf.write_text(_CONF.format(port=self.port, log=machine.root / "log"))
        conf.chmod(0o600)
        shutil.chown(conf, "slurm", "slurm")
        self.slurmdbd = self._start_slurmdbd()

    def _start_slurmdbd(self) -> Daemon:
        daemon = self._machine.daemon("slurmdbd", ["slurmdbd", "-D"])
        self.wait_until_it_answers()
        return daemon

    def wait_until_it_answers(self) -> None:
        """Return when `sacctmgr` gets an answer."""
        ask = ["sacctmgr", "--noheader", "list", "cluster"]
        until(lambda: self._machine.run(ask).returncode == 0, "slurmdbd answers")

    def restart_slurmdbd(self) -> None:
        """Start slurmdbd again after `slurmdbd.stop()`."""
        self.slurmdbd = self._start_slurmdbd()

    def add_cluster(self, name: str) -> None:
        """Add the cluster with its accounts and users, before its controller starts."""
        self._change(
            f"add cluster {name}",
            f"add account {ACCOUNT},{OTHER_ACCOUNT} Cluster={name} Description=benchmarks Organization=bench",
            f"add user {OPERATOR} Account={ACCOUNT},{OTHER_ACCOUNT} DefaultAccount={ACCOUNT}",
        )

    def add_limits(self) -> None:
        """Add the second QOS, after the controller has registered GPUs with the accounting."""
        limits = "MaxWall=00:10:00 MaxJobsPerUser=1 MaxTRESPerUser=gres/gpu=8"
        self._change(
            f"add qos {SHORT_QOS} Flags=DenyOnLimit Priority=10 {limits}",
            f"modify user {OPERATOR} set QOS=normal,{SHORT_QOS}",
        )

    def _change(self, *commands: str) -> None:
        """Run all commands in one sacctmgr: a process for each command costs half a second."""
        lines = "".join(f"{command}\n" for command in commands)
        done = self._machine.run(["sacctmgr", "--immediate"], stdin=lines, check=True)
        if "rror" in done.stdout + done.stderr:
            raise RuntimeError(f"sacctmgr: {done.stdout}{done.stderr}")
