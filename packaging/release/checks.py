"""What must hold of a checkout before it is released. Reads it, and changes nothing."""

import datetime
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from release import changelog
from release.commands import Refused, run

_FILES_SHOWN: Final = 5
_VERSION: Final = ("nodeagent/__init__.py", re.compile(r'^__version__ = "(?P<version>[^"]*)"', re.MULTILINE))
_PINS: Final = (("pyproject.toml", re.compile(r'"nodeagent-client==(?P<version>[^"]*)"')),)
"""Each other place that holds the version."""
_INTERFACE: Final = "nodeagent/api/interface.py"


def version_of(root: Path) -> str:
    """The version of the tree. Raises Refused where it has none, or one that apt and rpm may sort unlike."""
    place, pattern = _VERSION
    found = pattern.search(_text(root, place))
    if found is None:
        raise Refused(f"{place}: there is no line '__version__ = \"0.2.0\"'")
    if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", found["version"]):
        raise Refused(
            f"{place}:{_line_of(found)}: {found['version']!r} is no version that can be released; "
            "right are three numbers, such as 0.2.0"
        )
    return found["version"]


def tag_of(version: str) -> str:
    return f"v{version}"


def commit_of(root: Path) -> str:
    return run("git", "-C", root, "rev-parse", "--verify", "HEAD").strip()


def tagged(root: Path, version: str) -> str:
    """The commit that the tag of this version names; empty where there is no such tag."""
    tag = f"refs/tags/{tag_of(version)}"
    if not run("git", "-C", root, "for-each-ref", "--format=%(refname)", tag).strip():
        return ""
    return run("git", "-C", root, "rev-parse", "--verify", f"{tag}^{{commit}}").strip()


def problems(root: Path, today: datetime.date) -> list[str]:
    """What stands in the way of a release, a line each. Raises Refused where there is no version at all."""
    version = version_of(root)
    return [
        *_uncommitted(root),
        *_other_versions(root, version),
        *changelog.problems(_text(root, changelog.NAME), version, today),
        *_interface_not_kept(root),
        *_tag_of_another(root, version),
    ]


def _uncommitted(root: Path) -> Iterator[str]:
    files = run("git", "-C", root, "status", "--porcelain", "--untracked-files=all").splitlines()
    if files:
        more = f" and {len(files) - _FILES_SHOWN} more" if len(files) > _FILES_SHOWN else ""
        shown = ", ".join(line[3:] for line in files[:_FILES_SHOWN])
        yield f"not committed: {shown}{more}; right is a tree of which git status says that it is clean"


def _other_versions(root: Path, version: str) -> Iterator[str]:
    for place, pattern in _PINS:
        text = _text(root, place)
        found = pattern.search(text)
        if found is None:
            yield f"{place}: nodeagent-client is not pinned; right is 'nodeagent-client=={version}'"
        elif found["version"] != version:
            yield (
                f"{place}:{_line_of(found)}: nodeagent-client is pinned to {found['version']}; "
                f"right is {version}, as in {_VERSION[0]}"
            )


def _interface_not_kept(root: Path) -> Iterator[str]:
    """Decision 24: what a release promises to its clients is kept, so that later ones are held against it."""
    numbers = re.findall(r"^(?:MAJOR|MINOR)\b.*= (\d+)$", _text(root, _INTERFACE), re.MULTILINE)
    kept = f"proto/kept/{'.'.join(numbers)}.binpb"
    if not (root / kept).is_file():
        yield (
            f"{kept} is missing, and {_INTERFACE} has that version; right is to keep it: "
            f".venv/buf/bin/buf build proto --exclude-source-info --as-file-descriptor-set -o {kept}"
        )


def _tag_of_another(root: Path, version: str) -> Iterator[str]:
    commit, own = tagged(root, version), commit_of(root)
    if commit and commit != own:
        yield (
            f"the tag {tag_of(version)} is of commit {commit[:12]}, and this one is {own[:12]}; "
            f"right is a higher version in {_VERSION[0]}"
        )


def _text(root: Path, place: str) -> str:
    try:
        return (root / place).read_text()
    except FileNotFoundError as error:
        raise Refused(f"{place} is missing in {root}") from error


def _line_of(found: re.Match[str]) -> int:
    return found.string.count("\n", 0, found.start()) + 1
