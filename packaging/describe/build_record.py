"""What ``nodeagent version`` tells of a package: ``nodeagent/build.json``. It follows from the sources."""

import datetime
import subprocess
from pathlib import Path
from typing import Final

import msgspec

from describe import sources
from nodeagent import build
from nodeagent.build import Build

ROOT: Final = Path(__file__).resolve().parents[2]


def write(modules: Path, architecture: str) -> None:
    """``modules`` is the folder of the package ``nodeagent``. Raises CalledProcessError where git fails."""
    commit, clean, committed_at = _of_git(ROOT)
    record = Build(
        commit=commit,
        clean=clean,
        committed_at=committed_at,
        architecture=architecture,
        interpreter=sources.read()[sources.INTERPRETER].version,
    )
    (modules / build.FILE.name).write_bytes(msgspec.json.encode(record) + b"\n")


def _of_git(root: Path) -> tuple[str | None, bool | None, str | None]:
    """Commit, whether the sources are exactly those of it, and its time; of an export nothing is known."""
    if not (root / ".git").exists():
        return None, None, None
    commit, seconds = _git(root, "log", "-1", "--format=%H %ct").split()
    time = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
    # A new file would be packed too; what git ignores is none of the sources.
    changed = _git(root, "status", "--porcelain")
    return commit, not changed, time.isoformat().replace("+00:00", "Z")


def _git(root: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "--no-optional-locks", *words], cwd=root, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
