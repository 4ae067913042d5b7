"""The programs of a node that read a repository, apt and dnf. Each has its own files, none of the machine."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

Done = subprocess.CompletedProcess[str]


def moved(repository: Path, copy: Path) -> Path:
    """A copy of a repository, which tells apt and dnf that it lies where it does."""
    shutil.copytree(repository, copy)
    for name in ("nodeagent.sources", "nodeagent.repo"):
        offered = (copy / name).read_text()
        (copy / name).write_text(
            re.sub(r"file://\S*(?=/(apt|rpm|nodeagent\.asc)\b)", f"file://{copy}", offered)
        )
    return copy


@dataclass(frozen=True)
class Apt:
    """apt-get with an empty state, and the source that a repository offers for it."""

    root: Path
    repository: Path

    def __post_init__(self) -> None:
        for folder in (
            "etc/sources.list.d",
            "etc/preferences.d",
            "state/lists/partial",
            "cache/archives/partial",
        ):
            (self.root / folder).mkdir(parents=True)
        (self.root / "state/status").touch()
        key = self.root / "etc/nodeagent.gpg"
        key.write_bytes((self.repository / "nodeagent.gpg").read_bytes())
        offered = (self.repository / "nodeagent.sources").read_text()
        source, changed = re.subn("(?m)^Signed-By: .*$", f"Signed-By: {key}", offered)
        assert changed == 1
        (self.root / "etc/sources.list.d/nodeagent.sources").write_text(source)

    def run(self, *arguments: str, program: str = "apt-get") -> Done:
        places = {
            "Dir::Etc": self.root / "etc",
            "Dir::State": self.root / "state",
            "Dir::State::status": self.root / "state/status",
            "Dir::Cache": self.root / "cache",
            "APT::Architecture": "amd64",
            "APT::Architectures": "amd64",
            "APT::Sandbox::User": "root",
            "APT::Update::Error-Mode": "any",
            "Acquire::Languages": "none",
        }
        options = [f"-o{name}={value}" for name, value in places.items()]
        return _run([program, *options, *arguments], folder=self.root)


@dataclass(frozen=True)
class Dnf:
    """dnf with the file that a repository offers for it, and a tree to install into; needs root."""

    root: Path
    repository: Path
    tree: Path

    def __post_init__(self) -> None:
        for folder in ("repos", "log"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "dnf.conf").write_text("[main]\n")
        offered = (self.repository / "nodeagent.repo").read_text()
        (self.root / "repos/nodeagent.repo").write_text(offered)

    def run(self, *arguments: str) -> Done:
        """It takes the repository's key, as somebody who says yes does."""
        own = {"reposdir": "repos", "cachedir": "cache", "logdir": "log", "persistdir": "state"}
        options = [f"--setopt={name}={self.root / place}" for name, place in own.items()]
        options += [f"--config={self.root / 'dnf.conf'}", f"--installroot={self.tree}"]
        options += ["--assumeyes", "--releasever=1"]
        return _run(["dnf", *options, *arguments], folder=self.root)

    def held(self) -> list[str]:
        """The packages in its tree."""
        query = ["rpm", f"--root={self.tree}", "--query", "--all", "--qf", "%{NEVRA}\n"]
        return sorted(
            line for line in _run(query, folder=self.root).stdout.splitlines() if "gpg-pubkey" not in line
        )


def _run(command: Sequence[str], folder: Path) -> Done:
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "LC_ALL": "C.UTF-8"}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
