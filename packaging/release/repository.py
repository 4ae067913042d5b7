"""The folder that is served: the packages for apt and dnf, and the files of each release by themselves.

    nodeagent.gpg, nodeagent.asc       the public keys (keys.py)
    nodeagent.sources, nodeagent.repo  what a node needs to find the rest: for apt, for dnf
    apt/                               apt.py
    rpm/                               dnf.py
    releases/VERSION/                  every file of a release, SHA256SUMS, the COMMIT it was built of

A release is added in a copy, which takes the folder's place when all is there. What is published stays.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from release import apt, dnf
from release import keys as key_files
from release.commands import Refused, run
from release.keys import Keys

SUMS: Final = "SHA256SUMS"
_RELEASES: Final = "releases"
_COMMIT: Final = "COMMIT"
_PACKAGES: Final = (".deb", ".rpm")
_OWN: Final = (_RELEASES, apt.FOLDER, dnf.FOLDER)

_FOR_APT: Final = f"""\
# nodeagent, for apt: /etc/apt/sources.list.d/nodeagent.sources
# The key, beside this file as {key_files.APT}, belongs to where Signed-By says.
Types: deb
URIs: {{url}}/{apt.FOLDER}
Suites: stable
Components: main
Signed-By: /etc/apt/keyrings/{key_files.APT}
"""
_FOR_DNF: Final = f"""\
# nodeagent, for dnf: /etc/yum.repos.d/nodeagent.repo
[nodeagent]
name=nodeagent
baseurl={{url}}/{dnf.FOLDER}/$basearch
enabled=1
gpgcheck=1
repo_gpgcheck=1
gpgkey={{url}}/{key_files.RPM}
"""


def accept(folder: Path) -> None:
    """Raises Refused where the folder cannot be that of a repository."""
    if folder.is_mount():
        raise Refused(
            f"{folder} is a mount point, which nothing else can replace; right is a folder below it"
        )
    if folder.exists() and not folder.is_dir():
        raise Refused(f"{folder} is not a folder; right is a new one, or one that ./dev release has laid out")
    for left in sorted(folder.parent.glob(f".{folder.name}-*")):
        raise Refused(
            f"{left} is of a release that was cut off; right is to move its 'before', if it has one, to "
            f"{folder}, and to delete the rest"
        )
    filled = folder.is_dir() and any(folder.iterdir())
    if filled and not all((folder / name).exists() for name in _OWN):
        raise Refused(
            f"{folder} holds something else; right is a new folder, or one that ./dev release has laid out"
        )


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """No other release works on that folder meanwhile. Raises Refused where one does."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(beside, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise Refused(f"another release works in {folder.parent}; right is to wait for its end") from error
    finally:
        os.close(beside)


def holds(folder: Path, version: str, commit: str) -> bool:
    """Whether it has this release. Raises Refused where that is of another commit, or was changed."""
    release = folder / _RELEASES / version
    if not release.exists():
        return False
    try:
        built_of = (release / _COMMIT).read_text().strip()
    except FileNotFoundError as error:
        raise Refused(
            f"{error.filename} is missing; right is the whole release, or none of its files"
        ) from error
    if built_of != commit:
        raise Refused(
            f"{release} was built of commit {built_of[:12]}, and this one is {commit[:12]}; "
            "right is a higher version: what is published is never replaced"
        )
    run("sha256sum", "--check", "--strict", "--quiet", SUMS, folder=release)
    return True


@contextlib.contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A copy beside the folder, to be changed; in the end it is gone, unless something has taken it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        staging = Path(scratch) / folder.name
        if folder.exists():
            shutil.copytree(folder, staging, symlinks=True, copy_function=_copy)
        staging.mkdir(exist_ok=True)
        yield staging


@contextlib.contextmanager
def replaced(folder: Path, staging: Path) -> Iterator[None]:
    """The copy in the folder's place; what was there before comes back where the rest of a release fails."""
    before = staging.with_name("before")
    if folder.exists():
        folder.rename(before)
    try:
        staging.rename(folder)
        yield
    except BaseException:
        if folder.exists():
            folder.rename(staging)
        if before.exists():
            before.rename(folder)
        raise


def add(staging: Path, files: Sequence[Path], version: str, commit: str, keys: Keys) -> None:
    """The files of a release: as they are, but for the rpms, which are signed."""
    release = staging / _RELEASES / version
    release.mkdir(parents=True)
    for file in files:
        shutil.copyfile(file, release / file.name)
    keys.sign_rpms(sorted(release.glob("*.rpm")))
    (release / _COMMIT).write_text(f"{commit}\n")
    sums = [f"{_digest(file)}  {file.name}\n" for file in sorted(release.iterdir())]
    (release / SUMS).write_text("".join(sums))
    keys.sign_beside(release / SUMS)
    _offer(release.glob("*.deb"), staging / apt.FOLDER / apt.POOL)
    for architecture in dnf.ARCHITECTURES:
        _offer(release.glob(f"*.{architecture}.rpm"), staging / dnf.FOLDER / architecture)


def index(staging: Path, keys: Keys, url: str) -> None:
    """All that is not a file of a release."""
    apt.index(staging / apt.FOLDER, keys)
    dnf.index(staging / dnf.FOLDER, keys)
    keys.publish(staging)
    for name, text in (("nodeagent.sources", _FOR_APT), ("nodeagent.repo", _FOR_DNF)):
        (staging / name).unlink(missing_ok=True)
        (staging / name).write_text(text.format(url=url))


def verify(staging: Path) -> None:
    """As a node would, with the published keys. Raises Refused at the first signature that does not hold."""
    suite = staging / apt.FOLDER / "dists/stable"
    signed = [(suite / "InRelease",), (suite / "Release.gpg", suite / "Release")]
    beside = (*staging.glob(f"{_RELEASES}/*/{SUMS}"), *staging.glob(f"{dnf.FOLDER}/*/repodata/repomd.xml"))
    signed += [(file.with_name(f"{file.name}.asc"), file) for file in beside]
    for files in signed:
        run("gpgv", "--keyring", staging / key_files.APT, *files)
    with tempfile.TemporaryDirectory() as database:
        rpmkeys = ("rpmkeys", f"--dbpath={database}", "--define=_pkgverify_level all")
        run(*rpmkeys, "--import", staging / key_files.RPM)
        run(*rpmkeys, "--checksig", *sorted(staging.glob(f"{dnf.FOLDER}/*/*.rpm")))


def right_url(url: str) -> str:
    """Without a slash at its end. Raises Refused."""
    if not re.fullmatch(r"(https?://[^/\s]+|file://)(/[^\s?#]*)?", url) or url in {"file://", "file:///"}:
        raise Refused(
            f"--url {url} is no place of a folder; right is where it will be served, such as "
            "https://packages.example.com/nodeagent, or file:///srv/nodeagent"
        )
    return url.rstrip("/")


def _offer(packages: Iterator[Path], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for package in packages:
        if (folder / package.name).exists():
            raise Refused(
                f"{folder / package.name} is there without its release; right is to remove it first"
            )
        _link(package, folder / package.name)


def _copy(source: str, target: str) -> str:
    """Packages never change, so that a link to them does."""
    if source.endswith(_PACKAGES):
        _link(Path(source), Path(target))
    else:
        shutil.copy2(source, target)
    return target


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copy2(source, target)


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
