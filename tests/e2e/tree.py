"""The small Debian tree that test machines boot: made once by mmdebstrap, and never written to."""

import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

SUITE = platform.freedesktop_os_release()["VERSION_CODENAME"]
PACKAGES = ("dbus", "libstdc++6", "procps", "rpm", "systemd", "systemd-sysv")
"""What the package needs, and rpm, for the package in that form. No Python."""
LIBRARIES = ("dash", "libc6", "libgcc-s1", "libstdc++6", "libsystemd0")
"""What the daemon needs where no systemd runs it: for trees of another architecture, which are not booted."""


@contextlib.contextmanager
def laid_over(
    folder: Path,
    *layers: Path,
    suite: str = SUITE,
    also: Sequence[str] = (),
    foreign: str = "",
    kept: bool = False,
) -> Iterator[Path]:
    """A tree of that suite, by default this machine's, with these layers over it, in the new folder
    ``folder/tree``. ``also`` are packages that are in it besides. ``foreign`` is another architecture, in
    Debian's words: its tree holds libraries alone.

    What is written to it lies in ``folder/written``. It is gone at the end unless it is kept: as a layer of
    other trees. It is ``volatile`` (Documentation/filesystems/overlayfs.rst): no fsync waits for a disk.

    Takes no time; the first time a minute, and the network. Raises CalledProcessError, whose notes hold the
    tool's own words.
    """
    tree, written, work = (folder / name for name in ("tree", "written", "work"))
    for each in (tree, written, work):
        each.mkdir(parents=True)
    written.chmod(0o755)  # as the root of the tree: others than root look into it
    lower = ":".join(map(str, (*reversed(layers), _distribution(suite, also, foreign))))
    how = f"volatile,lowerdir={lower},upperdir={written},workdir={work}"
    _run("mount", "--types", "overlay", "--options", how, "overlay", str(tree))
    try:
        yield tree
    finally:
        _run("umount", str(tree))
        # Before it is on a disk, a slow one of which would hold up the commits of the tests that follow.
        for each in (work,) if kept else (work, written):
            shutil.rmtree(each)


def switch(root: Path, how: Literal["enable", "disable"], unit: str) -> None:
    """Whether it begins when the tree is booted."""
    _run("systemctl", f"--root={root}", how, unit)


def kept_as(name: str, make: Callable[[Path], None]) -> Path:
    """What is slow to make, and always the same: made once into a new folder, and never written to."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nodeagent-tests"
    cache.mkdir(parents=True, exist_ok=True)
    made = cache / name
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            unfinished = cache / f"unfinished-{made.name}"
            if unfinished.exists():
                shutil.rmtree(unfinished)
            make(unfinished)
            unfinished.rename(made)
    return made


def _distribution(suite: str, also: Sequence[str], foreign: str) -> Path:
    # Scripts of packages of another architecture do not run here: its packages are unpacked, and no more.
    packages, how = (LIBRARIES, "extract") if foreign else ((*PACKAGES, *also), "minbase")
    what = hashlib.sha256(" ".join((suite, *packages)).encode()).hexdigest()[:12]
    options = [f"--variant={how}", f"--include={','.join(packages)}"]
    options += [f"--architectures={foreign}"] if foreign else []
    return kept_as(f"{suite}{foreign}-{what}", lambda into: _run("mmdebstrap", *options, suite, str(into)))


def _run(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        error = subprocess.CalledProcessError(done.returncode, command)
        error.add_note(done.stderr)
        raise error
