"""What changed in the lock files: ``python -m dependency_report BEFORE AFTER``, folders like packaging/.

``./dev update`` calls it after it has brought the locks to the newest versions. For each package that changed
it prints the old and the new version, where its changes are described, and both licences where they differ.
It changes no file, and decides nothing about a version.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from importlib.metadata import distributions
from pathlib import Path
from typing import Final, cast

LIMIT_S: Final = 600.0

_PINNED: Final = re.compile(r"^(?P<name>[\w.-]+)(?:\[[^\]]*\])?==(?P<version>[^\s;\\]+)", re.MULTILINE)
_CHANGES: Final = re.compile(r"chang|release|history|news|what's new", re.IGNORECASE)
"""In the labels of a package's links (``Project-URL`` of its metadata)."""

_PIP_INSTALL: Final = (
    *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--quiet"),
    *("--no-deps", "--no-compile", "--no-build-isolation"),
)
_LICENSE_CLASSIFIER: Final = "License :: "


@dataclass(frozen=True, slots=True)
class Locked:
    """A package in a lock. ``license`` is only known where the lock says it (npm)."""

    version: str
    license: str = ""


@dataclass(frozen=True, slots=True)
class Described:
    """What the metadata of a version has; ``home`` is a page for where no list of ``changes`` is named."""

    license: str
    changes: str = ""
    home: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """``old`` is None for a package that is added, ``new`` for one that is removed. ``locks`` name it."""

    name: str
    old: Locked | None
    new: Locked | None
    locks: tuple[str, ...]


def read_locks(folder: Path) -> dict[str, dict[str, Locked]]:
    """Lock (path below ``folder``) -> package -> what is pinned."""
    found = {path.name: _python_lock(path.read_text()) for path in sorted(folder.glob("*.lock"))}
    for path in sorted(folder.rglob("package-lock.json")):
        if "node_modules" not in path.parts:
            found[str(path.relative_to(folder))] = _npm_lock(path.read_text())
    return found


def compare(
    before: Mapping[str, Mapping[str, Locked]], after: Mapping[str, Mapping[str, Locked]]
) -> list[Change]:
    """One change for each package and pair of versions, by name."""
    locks: dict[tuple[str, Locked | None, Locked | None], list[str]] = {}
    for lock in sorted(before.keys() | after.keys()):
        old, new = before.get(lock, {}), after.get(lock, {})
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name):
                locks.setdefault((name, old.get(name), new.get(name)), []).append(lock)
    changes = [Change(name, old, new, tuple(files)) for (name, old, new), files in locks.items()]
    return sorted(changes, key=lambda each: (each.name, each.locks))


def report(
    changes: Sequence[Change],
    described: Mapping[tuple[str, str], Described],
    reviewed: Mapping[str, str],
) -> list[str]:
    """The lines of the report. ``described`` is by name and version; ``reviewed`` by name."""
    if not changes:
        return ["nothing changed: all locks have the newest versions"]
    lines = [f"{len(changes)} changes:"]
    for each in changes:
        old, new = (locked.version if locked else "-" for locked in (each.old, each.new))
        lines.append(f"  {each.name} {old} -> {new}  ({', '.join(each.locks)})")
        lines += [f"      {text}" for text in _notes(each, described, reviewed)]
    return lines


def describe(changes: Iterable[Change]) -> dict[tuple[str, str], Described]:
    """The metadata of both versions of each Python package that changed, from the registry that pip uses."""
    python = [each for each in changes if any(lock.endswith(".lock") for lock in each.locks)]
    found: dict[tuple[str, str], Described] = {}
    for pinned in (
        {each.name: each.old.version for each in python if each.old},
        {each.name: each.new.version for each in python if each.new},
    ):
        if pinned:
            found |= _installed([f"{name}=={version}" for name, version in pinned.items()])
    return found


def reviewed_versions(components: Path) -> dict[str, str]:
    """Distribution -> the version for which its compiled-in parts were looked up (``components.toml``)."""
    rows = tomllib.loads(components.read_text()).get("distributions", {})
    return {name: row["reviewed"] for name, row in rows.items() if "reviewed" in row}


def _notes(
    change: Change, described: Mapping[tuple[str, str], Described], reviewed: Mapping[str, str]
) -> list[str]:
    if change.new is None:
        return []
    old, new = (
        described.get((change.name, each.version)) if each else None for each in (change.old, change.new)
    )
    pages = {"changes": new.changes, "home": "" if new.changes else new.home} if new else {}
    notes = [f"{label}: {page}" for label, page in pages.items() if page]
    licenses = (
        (old.license if old else change.old.license if change.old else ""),
        (new.license if new else change.new.license),
    )
    if change.old is None:
        notes.append(f"license: {licenses[1] or 'unknown'}")
    elif licenses[0] != licenses[1]:
        notes.append(f"license: {licenses[0] or 'unknown'} -> {licenses[1] or 'unknown'}")
    if change.name in reviewed and reviewed[change.name] != change.new.version:
        notes.append(
            f"reviewed for {reviewed[change.name]}: look up what it compiles in, then correct its row in"
            " packaging/describe/components.toml"
        )
    return notes


def _python_lock(text: str) -> dict[str, Locked]:
    """With more than one version where they differ by platform: "1.0, 2.0"."""
    versions: dict[str, list[str]] = {}
    for found in _PINNED.finditer(text):
        versions.setdefault(_normal(found["name"]), []).append(found["version"])
    return {name: Locked(", ".join(sorted(each))) for name, each in versions.items()}


def _npm_lock(text: str) -> dict[str, Locked]:
    packages = json.loads(text).get("packages", {})
    return {
        path.rpartition("node_modules/")[2]: Locked(each["version"], str(each.get("license", "")))
        for path, each in packages.items()
        if "node_modules/" in path and "version" in each
    }


def _installed(requirements: Sequence[str]) -> dict[tuple[str, str], Described]:
    """By an installation into a folder that is deleted again: a source distribution has no metadata before.

    What cannot be installed has no description.
    """
    with tempfile.TemporaryDirectory(prefix="nodeagent-update-") as folder:
        for each in requirements:
            command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
            command += [
                "--quiet",
                "--no-deps",
                "--no-compile",
                "--no-build-isolation",
                "--target",
                folder,
                each,
            ]
            try:
                subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S)
            except subprocess.SubprocessError as error:
                print(f"{each} is not described: {_last_line(error)}", file=sys.stderr)
        return {
            (_normal(found.metadata["Name"]), found.version): described_by(cast(Message, found.metadata))
            for found in distributions(path=[folder])
        }


def described_by(metadata: Message) -> Described:
    """Licence and changes as the core metadata of a distribution have them (``License-Expression`` first)."""
    classifiers = [
        str(each).rpartition(" :: ")[2]
        for each in metadata.get_all("Classifier", [])
        if str(each).startswith(_LICENSE_CLASSIFIER)
    ]
    text = str(metadata.get("License") or "")
    stated = metadata.get("License-Expression") or ", ".join(classifiers) or text.partition("\n")[0]
    links = {
        label.strip(): link.strip()
        for label, _, link in (str(each).partition(",") for each in metadata.get_all("Project-URL", []))
    }
    changes = next((link for label, link in links.items() if _CHANGES.search(label)), "")
    home = str(metadata.get("Home-page") or next(iter(links.values()), ""))
    return Described(str(stated), changes, home)


def _normal(name: str) -> str:
    """As an index compares names: https://packaging.python.org/en/latest/specifications/name-normalization/."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _last_line(error: subprocess.SubprocessError) -> str:
    output = str(getattr(error, "stderr", None) or error).strip()
    return output.splitlines()[-1] if output else "no reason given"


def main(before: Path, after: Path) -> None:
    changes = compare(read_locks(before), read_locks(after))
    lines = report(changes, describe(changes), reviewed_versions(after / "describe" / "components.toml"))
    print("\n".join(lines))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
