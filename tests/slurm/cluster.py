"""A real Slurm on this machine: munged, slurmctld and some slurmd, on free ports of the loopback.

Everything of it lies in one folder, also its munge key. It is of root alone, as every daemon runs as root. A
daemon is ended by its pid, and jobs by the environment that they have from it. The numbers of its jobs begin
where no other cluster's do, for the cgroups of all of them lie in one tree.

Where the kernel has a freezer of cgroups' first version, each step has the cgroup that slurmd gives it, from
which nodeagent reads the job's name. Elsewhere its processes are found by their parents, and have no name.
"""

import contextlib
import os
import random
import secrets
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.harness.daemon import free_port
from tests.waiting import wait_until

MOST_OF_ONE_CLUSTER: Final = 1000
"""Between the numbers of the first jobs of two clusters."""

LEAST_ID: Final = 100_000
MOST_IDS: Final = 1 << 26
"""slurm.conf(5), MaxJobId: at most 67,108,863."""

COMMAND_LIMIT_S: Final = 60.0

ASKED_EACH_S: Final = 0.1
"""What a test waits for is mostly what scontrol says, a process each time: most of what a wait costs."""

HAS_CGROUPS: Final = Path("/sys/fs/cgroup/freezer/cgroup.procs").exists()
"""Whether steps have cgroups of their own."""

CGROUP_CONF: Final = "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n"


@dataclass(kw_only=True)
class Cluster:
    """``settings`` are further keys of slurm.conf, or other values for ours. ``of_nodes`` are further words
    of the line of each node, such as ``Gres=npu:8``, and ``files`` further files beside slurm.conf by their
    names, such as ``gres.conf``. All before ``start``, or before ``configure`` and "scontrol reconfigure".
    """

    folder: Path
    nodes: Sequence[str] = ("n1", "n2", "n3")
    settings: Mapping[str, str] = field(default_factory=dict)
    of_nodes: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    first_job: int = 0

    @property
    def conf(self) -> Path:
        return self.folder / "slurm.conf"

    @property
    def env(self) -> dict[str, str]:
        """What a command of Slurm needs to find this cluster."""
        outer = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "SBATCH"))}
        return {**outer, "SLURM_CONF": str(self.conf)}

    def start(self) -> None:
        """Start all of it, and wait until every node is there for jobs."""
        self.configure()
        self.start_munge()
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)
        self.comes(lambda: all(self.state(node) == ["IDLE"] for node in self.nodes), "every node is idle")

    def configure(self) -> None:
        """Write its files anew, as the fields say."""
        self.folder.mkdir(exist_ok=True)
        for name in ("controller", *self.nodes):
            (self.folder / name).mkdir(exist_ok=True)
            if name not in self.ports:
                self.ports[name] = free_port()
        if not self.first_job:
            self.first_job = random.randrange(LEAST_ID, MOST_IDS - MOST_OF_ONE_CLUSTER, MOST_OF_ONE_CLUSTER)
        key = self.folder / "munge.key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_bytes(secrets.token_bytes(128))
        for name, text in {"cgroup.conf": CGROUP_CONF, **self.files}.items():
            (self.folder / name).write_text(text)
        self.conf.write_text(self._text())

    def _text(self) -> str:
        host = socket.gethostname()
        keys = {
            "ClusterName": "nodeagent",
            "SlurmctldHost": f"{host}(127.0.0.1)",
            "SlurmctldPort": str(self.ports["controller"]),
            "SlurmUser": "root",
            # A requeued job may start again once its credential has expired: 121 s, without this.
            "AuthInfo": f"socket={self.folder}/munge.sock,cred_expire=5",
            "StateSaveLocation": f"{self.folder}/controller",
            "SlurmctldPidFile": f"{self.folder}/controller/pid",
            "SlurmdSpoolDir": f"{self.folder}/%n",
            "SlurmdPidFile": f"{self.folder}/%n/pid",
            # Without this a node has as many processors as the machine, and not more.
            "SlurmdParameters": "config_overrides",
            "ProctrackType": "proctrack/cgroup" if HAS_CGROUPS else "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "SelectType": "select/cons_tres",
            # As shipped a job has all memory of its nodes, and no second one fits.
            "SelectTypeParameters": "CR_Core",
            "MpiDefault": "none",
            "FirstJobId": str(self.first_job),
            "KillWait": "2",
            "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,bf_interval=1",
            "BatchStartTimeout": "60",
            **self.settings,
        }
        lines = [f"{key}={value}" for key, value in keys.items()]
        lines += [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={self.ports[node]} CPUs=4 "
            + self.of_nodes
            for node in self.nodes
        ]
        lines.append("PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=NO")
        return "\n".join((*lines, ""))

    def start_munge(self) -> None:
        # --force: the folders of tests are closed to others, and nobody but root uses it.
        socket_path = self.folder / "munge.sock"
        self._spawn(
            "munge",
            "munged",
            "--foreground",
            "--force",
            f"--socket={socket_path}",
            f"--key-file={self.folder}/munge.key",
            f"--pid-file={self.folder}/munge.pid",
            f"--log-file={self.folder}/munge.log",
            f"--seed-file={self.folder}/munge.seed",
            "--num-threads=2",
        )
        self.comes(lambda: self._answers("munge", "--no-input", f"--socket={socket_path}"), "munged answers")

    def start_controller(self) -> None:
        self._spawn("controller", "slurmctld", "-D", "-f", str(self.conf))
        self.comes(lambda: self._answers("scontrol", "ping"), "slurmctld answers")

    def start_node(self, node: str) -> None:
        self._spawn(node, "slurmd", "-D", "-N", node, "-f", str(self.conf))

    def kill(self, name: str) -> None:
        """Kill -9 of "munge", "controller" or a node's slurmd; its jobs live on. A controller forgets what it
        has not yet written, such as a drain of the last moment.
        """
        self._end(name, signal.SIGKILL)

    def end(self, name: str) -> None:
        """As ``kill``, but in order: a controller writes all down."""
        self._end(name, signal.SIGTERM)

    def stop(self) -> None:
        """End all of it, and the jobs with it."""
        for name in list(self.running):
            self._end(name, signal.SIGKILL)
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def pids(self) -> list[int]:
        """What runs with this cluster's environment: the daemons, the steps, their jobs."""
        mark = b"SLURM_CONF=" + bytes(self.conf) + b"\0"
        return [pid for pid, environ in _of_processes("environ").items() if mark in environ + b"\0"]

    def of_processes(self, file: str) -> dict[int, bytes]:
        """What /proc/PID/FILE holds, of all that runs with this cluster's environment."""
        own = self.pids()
        return {pid: held for pid, held in _of_processes(file).items() if pid in own}

    def run(self, *command: str | Path, **env: str) -> str:
        """What a command of Slurm prints. It has to succeed."""
        status, out, err = self.tried(*command, **env)
        assert status == 0, f"{command}: {status}\n{out}{err}\n{self.log()}"
        return out

    def tried(self, *command: str | Path, **env: str) -> tuple[int, str, str]:
        """(exit status, standard output, standard error)."""
        done = self._ask(command, "", env)
        return done.returncode, done.stdout, done.stderr

    def submit(self, script: str, *options: str, **env: str) -> int:
        """The number of a batch job; what it prints is ``output`` of it."""
        command = ("sbatch", "--parsable", "--output", f"{self.folder}/%j.out", "--open-mode=append")
        done = self._ask((*command, *options), f"#!/bin/sh\n{script}\n", env)
        assert done.returncode == 0, f"{done.stderr}\n{self.log()}"
        return int(done.stdout)

    def output(self, job: int) -> str:
        """What all runs of a batch job have printed, its errors too."""
        file = self.folder / f"{job}.out"
        return file.read_text() if file.exists() else ""

    def state(self, node: str) -> list[str]:
        """The state of a node with its flags, such as ["IDLE", "DRAIN"]."""
        return self.node(node).get("State", "").split("+")

    def reason(self, node: str) -> str:
        """Why it is drained or down, without who and when; "" where it is not."""
        return self.node(node).get("Reason", "").rpartition(" [")[0]

    def node(self, node: str) -> dict[str, str]:
        """What scontrol says of it; a value that holds blanks is whole only where it is the last."""
        status, out, _ = self.tried("scontrol", "show", "node", node)
        return _fields(out) if status == 0 else {}

    def job(self, job: int) -> dict[str, str]:
        """What scontrol says of it; nothing once Slurm has forgotten it."""
        status, out, _ = self.tried("scontrol", "show", "job", "-d", str(job))
        return _fields(out) if status == 0 else {}

    def comes(self, found: Callable[[], object], what: str) -> None:
        """Wait for it; the failure shows what the daemons have said."""
        try:
            wait_until(found, what, each_s=ASKED_EACH_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log()}") from None

    def log(self, last: int = 3000) -> str:
        """The ends of what all daemons have said."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {each.name}\n{each.read_text(errors='replace')[-last:]}" for each in logs)

    def _ask(
        self, command: Sequence[str | Path], given: str, env: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            check=False,
            cwd=self.folder,
            env={**self.env, **env},
            input=given,
            capture_output=True,
            text=True,
            timeout=COMMAND_LIMIT_S,
        )

    def _answers(self, *command: str) -> bool:
        return self.tried(*command)[0] == 0

    def _spawn(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _end(self, name: str, number: int) -> None:
        process = self.running.pop(name)
        process.send_signal(number)
        process.wait(COMMAND_LIMIT_S)


def _of_processes(file: str) -> dict[int, bytes]:
    found = dict[int, bytes]()
    for path in Path("/proc").glob(f"[0-9]*/{file}"):
        with contextlib.suppress(OSError):
            found[int(path.parent.name)] = path.read_bytes()
    return found


def _fields(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line.strip().startswith("Reason="):
            found["Reason"] = line.partition("=")[2]
            continue
        for word in line.split():
            key, equals, value = word.partition("=")
            if equals:
                found.setdefault(key, value)
    return found


@contextmanager
def cluster(folder: Path, **fields: Any) -> Iterator[Cluster]:
    """One that runs; at the end nothing of it is left."""
    made = Cluster(folder=folder, **fields)
    try:
        made.start()
        yield made
    finally:
        made.stop()
