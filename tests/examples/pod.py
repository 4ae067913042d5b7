"""The pod of packaging/examples/kubernetes/job.yaml, run without a cluster: as process 1 of a PID namespace,
in a root of its own (overlay), with the volumes, the environment and the user that the manifest gives it.

What a kubelet adds is added: the annotations as the downward API writes them, the value of a label, and
``$(NAME)`` in a command. What the Job controller decides after a pod has ended is ``runs``.
"""

import itertools
import json
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from tests.documents import ROOT
from tests.waiting import WAIT_LIMIT_S

MANIFEST: Final = ROOT / "packaging/examples/kubernetes/job.yaml"
UID_LABEL: Final = "metadata.labels['batch.kubernetes.io/controller-uid']"
PATH: Final = "/usr/local/bin:/usr/bin:/bin"


def objects() -> list[Any]:
    return list(yaml.safe_load_all(MANIFEST.read_text()))


def job() -> Any:
    (found,) = (each for each in objects() if each["kind"] == "Job")
    return found


def spec() -> Any:
    return job()["spec"]["template"]["spec"]


def container() -> Any:
    (found,) = spec()["containers"]
    return found


def annotations() -> dict[str, str]:
    return dict(job()["spec"]["template"]["metadata"]["annotations"])


class Ended(NamedTuple):
    status: int
    output: str
    errors: str


@dataclass(kw_only=True)
class Pod:
    """``volumes``: the folder or file of each volume but the annotations and the memory."""

    folder: Path
    volumes: Mapping[str, Path]
    uid: str = "5c1a-7f"
    env: Mapping[str, str]

    def run(self) -> Ended:
        """Its container to the end; both streams are pipes, as a runtime's are."""
        for name in ("upper", "work", "root", "podinfo"):
            (self.folder / name).mkdir(parents=True)
        lines = (f"{key}={json.dumps(value)}" for key, value in sorted(annotations().items()))
        (self.folder / "podinfo/annotations").write_text("\n".join(lines))
        done = subprocess.run(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount", "sh", "-euc", self._script()],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_LIMIT_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def _script(self) -> str:
        """Mounts, and then the command in place of the shell: process 1."""
        root = self.folder / "root"
        layers = f"lowerdir=/,upperdir={self.folder}/upper,workdir={self.folder}/work"
        lines = [
            ["mount", "-t", "overlay", "overlay", "-o", layers, root],
            ["mount", "-t", "proc", "proc", root / "proc"],
            ["mount", "--rbind", "/dev", root / "dev"],
            ["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", root / "tmp"],
            *(line for each in container()["volumeMounts"] for line in self._mount(each, root)),
        ]
        user = spec()["securityContext"]
        command = [
            "exec", "chroot", f"--userspec={user['runAsUser']}:{user['runAsGroup']}", root,
            "env", "--ignore-environment", f"--chdir={container()['workingDir']}",
            *(f"{name}={value}" for name, value in self._environment().items()), *self._command(),
        ]  # fmt: skip
        return "\n".join(shlex.join(map(str, line)) for line in (*lines, command))

    def _mount(self, mount: Any, root: Path) -> list[list[Any]]:
        (volume,) = (each for each in spec()["volumes"] if each["name"] == mount["name"])
        target = root / mount["mountPath"].removeprefix("/")
        if volume.get("emptyDir") == {"medium": "Memory"}:
            return [["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", target]]
        source = self.folder / "podinfo" if "downwardAPI" in volume else self.volumes[mount["name"]]
        made = ["mkdir", "-p", target] if source.is_dir() else ["install", "-D", "/dev/null", target]
        bound = ["mount", "--bind", source, target]
        closed = [["mount", "-o", "remount,bind,ro", target]] if mount.get("readOnly") else []
        return [made, bound, *closed]

    def _environment(self) -> dict[str, str]:
        values = {each["name"]: each.get("value", "") for each in container()["env"]}
        for each in container()["env"]:
            if "valueFrom" in each:
                assert each["valueFrom"]["fieldRef"]["fieldPath"] == UID_LABEL
                values[each["name"]] = self.uid
        return {"PATH": PATH, **values, **self.env}

    def _command(self) -> list[str]:
        values = self._environment()
        return [re.sub(r"\$\((\w+)\)", lambda name: values[name[1]], each) for each in container()["command"]]


class Outcome(NamedTuple):
    """``reason``: of the Job's condition, "" where it has completed."""

    pods: Sequence[Ended]
    reason: str

    @property
    def statuses(self) -> list[int]:
        return [each.status for each in self.pods]


def runs(pod: Callable[[int], Pod]) -> Outcome:
    """Run pods, by their number from 0, until the Job ends by its podFailurePolicy or its backoffLimit."""
    ended = list[Ended]()
    failures = 0
    for number in itertools.count():
        ended.append(pod(number).run())
        if ended[-1].status == 0:
            return Outcome(ended, "")
        action = action_for(ended[-1].status)
        if action == "FailJob":
            return Outcome(ended, "PodFailurePolicy")
        failures += action != "Ignore"
        if failures > job()["spec"]["backoffLimit"]:
            return Outcome(ended, "BackoffLimitExceeded")
    raise AssertionError


def action_for(status: int) -> str:
    """Of the first rule that fits, "Count" where none does."""
    for rule in job()["spec"]["podFailurePolicy"]["rules"]:
        wanted = rule["onExitCodes"]
        assert (wanted["operator"], wanted["containerName"]) == ("In", container()["name"])
        if status in wanted["values"]:
            return str(rule["action"])
    return "Count"
