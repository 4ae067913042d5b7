"""The four kinds of sources of an archive: commands of nodeagent, programs, texts made here, and files.

Each makes ``Part``s, which ``collecting`` runs. Only what reads is run. A file is read only if it is a
regular one; a symbolic link is followed only within its folder: root does not read what another user points
at.
"""

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Protocol

from nodeagent.cli.bundle.collecting import Part, collect
from nodeagent.cli.shared.errors import EXIT_UNAVAILABLE
from nodeagent.config.sections import AgentConfig, MetricsConfig

DAEMON_LIMIT_S: Final = 3.0
"""How long a command waits for the daemon before it reads the store."""

_LIST_LIMIT_S: Final = 5.0
_READ: Final = 1 << 16
_ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "COLUMNS": "200",
    "SYSTEMD_COLORS": "0",
}
_FOLDERS: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledNode:
    """What the sources need to know. ``config_path`` None: the usual place. ``since`` is of the caller."""

    agent: AgentConfig
    metrics: MetricsConfig
    record_dir: Path
    config_files: Sequence[Path]
    site_table_folders: Sequence[Path]
    config_path: Path | None
    journal_since: datetime
    since: datetime | None

    @property
    def state_dir(self) -> Path:
        return Path(self.agent.state_dir)


@dataclass(frozen=True, slots=True)
class Absent:
    """What is not on this node, such as the tool of another vendor."""

    item: str
    reason: str


class Source(Protocol):
    """``parts``: its parts on this node, for the item of that name."""

    @property
    def about(self) -> str: ...

    def parts(self, item: str, node: BundledNode) -> Iterator[Part | Absent]: ...


@dataclass(frozen=True, slots=True)
class OwnCommand:
    """A command of nodeagent. ``asks``: the daemon, else its store."""

    file: str
    words: Sequence[str]
    asks: bool = True
    since: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def about(self) -> str:
        return f"nodeagent {' '.join(self.words)}"

    def parts(self, item: str, node: BundledNode) -> Iterator[Part | Absent]:
        words = [*self.words]
        if self.asks:
            words += ["--timeout", f"{DAEMON_LIMIT_S:g}"]
        if self.since and node.since is not None:
            words += ["--since", node.since.isoformat()]

        def run() -> int:
            os.environ.pop("NODEAGENT_OUTPUT", None)
            if node.config_path is not None:
                os.environ["NODEAGENT_CONFIG"] = str(node.config_path)
            return _status_of(words)

        options = {"limit_s": 20.0, "also_ok": (EXIT_UNAVAILABLE,), **self.options}
        yield Part(item=item, file=self.file, source=f"nodeagent {' '.join(words)}", run=run, **options)


@dataclass(frozen=True, slots=True)
class OtherProgram:
    """A program of the node; ``{since}`` in its words is the time from which journals are read."""

    file: str
    words: Sequence[str]
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def about(self) -> str:
        return " ".join(word for word in self.words if "{" not in word)

    def parts(self, item: str, node: BundledNode) -> Iterator[Part | Absent]:
        words = [word.replace("{since}", f"@{node.journal_since.timestamp():.0f}") for word in self.words]
        path = shutil.which(words[0], path=_search_path())
        if path is None:
            yield Absent(item, f"{words[0]} is not installed")
            return

        def run() -> int:
            os.execve(path, words, {**os.environ, **_ENVIRONMENT, "PATH": _search_path()})

        yield Part(item=item, file=self.file, source=" ".join(words), run=run, **self.options)


@dataclass(frozen=True, slots=True)
class MadeText:
    """What a function here finds out."""

    file: str
    about: str
    make: Callable[[BundledNode], Iterator[str]]
    options: Mapping[str, Any] = field(default_factory=dict)

    def parts(self, item: str, node: BundledNode) -> Iterator[Part | Absent]:
        def run() -> int:
            with _standard_output():
                for line in self.make(node):
                    sys.stdout.write(f"{line}\n")
            return 0

        yield Part(item=item, file=self.file, source=self.about, run=run, **self.options)


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """Files, each under its own path below ``folder``; ``about`` names them for people."""

    folder: str
    about: str
    paths: Callable[[BundledNode], Sequence[Path]]
    options: Mapping[str, Any] = field(default_factory=dict)

    def parts(self, item: str, node: BundledNode) -> Iterator[Part | Absent]:
        found, error = self._found(node)
        for path in found:
            name = f"{self.folder}/{str(path.absolute()).lstrip('/')}"
            yield Part(item=item, file=name, source=str(path), run=_reading(path), **self.options)
        if not found:
            yield Absent(item, f"{self.about}: {error or 'none'}")

    def _found(self, node: BundledNode) -> tuple[list[Path], str]:
        """The paths, or why there are none: folders are listed by a process too, which may hang."""

        def run() -> int:
            with _standard_output():
                sys.stdout.write("\0".join(map(str, self.paths(node))))
            return 0

        part = Part(item="", file="", source=self.about, run=run, limit_s=_LIST_LIMIT_S)
        listed = collect([part], _LIST_LIMIT_S)[0]
        names = listed.content.decode(errors="surrogateescape").split("\0")
        return [Path(name) for name in names if name and not listed.error], listed.error


def these(*paths: str) -> Callable[[BundledNode], Sequence[Path]]:
    """Those of the paths that are there."""
    return lambda _node: [Path(path) for path in paths if os.path.lexists(path)]


def _reading(path: Path) -> Callable[[], int]:
    def run() -> int:
        descriptor = open_regular(path)
        while data := os.read(descriptor, _READ):
            os.write(1, data)
        return 0

    return run


def open_regular(path: Path) -> int:
    """A descriptor for reading. Raises ``OSError``, also for a link out of its folder, and for a pipe."""
    target = path
    if path.is_symlink():
        target = Path(os.path.realpath(path))
        if not target.is_relative_to(os.path.realpath(path.parent)):
            raise OSError(f"{path} is a symbolic link out of its folder, to {target}: not followed")
    descriptor = os.open(target, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file: not read")
    return descriptor


def _search_path() -> str:
    """Also the folders of an administrator, which a user's $PATH may lack."""
    folders = [*os.environ.get("PATH", "").split(os.pathsep), *_FOLDERS]
    return os.pathsep.join(dict.fromkeys(folder for folder in folders if folder.startswith("/")))


class _standard_output:  # noqa: N801 - used as a function
    """What this process prints goes to its own descriptors: a caller may have replaced ``sys.stdout``."""

    def __enter__(self) -> None:
        sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
        sys.stderr = open(2, "w", encoding="utf-8", errors="surrogateescape", closefd=False)

    def __exit__(self, *_: object) -> None:
        sys.stdout.flush()
        sys.stderr.flush()


def _status_of(words: Sequence[str]) -> int:
    """The exit status of a command of nodeagent that runs in this process."""
    from nodeagent.cli.main import main

    with _standard_output():
        try:
            main(list(words), prog_name="nodeagent")
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0
