"""The programs of a node that read a repository, apt and dnf; each has files of its own, nothing of this machine."""

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

Done = subprocess.CompletedProcess[str]


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
    """dnf for an empty root, with the repository file that a repository offers for it; needs root."""

    root: Path
    repository: Path

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
        options += [f"--config={self.root / 'dnf.conf'}", f"--installroot={self.root / 'tree'}"]
        options += ["--assumeyes", "--releasever=1", "--forcearch=x86_64"]
        return _run(["dnf", *options, *arguments], folder=self.root)

    def held(self) -> list[str]:
        """The packages in its root."""
        query = ["rpm", f"--root={self.root / 'tree'}", "--query", "--all", "--qf", "%{NEVRA}\n"]
        return sorted(
            line for line in _run(query, folder=self.root).stdout.splitlines() if "gpg-pubkey" not in line
        )


def _run(command: Sequence[str], folder: Path) -> Done:
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "LC_ALL": "C.UTF-8"}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
