"""The small Debian tree that test machines boot: made once by mmdebstrap, kept packed, unpacked for each."""

import fcntl
import hashlib
import os
import platform
import subprocess
from pathlib import Path

SUITE = platform.freedesktop_os_release()["VERSION_CODENAME"]
PACKAGES = ("dbus", "procps", "python3", "rpm", "systemd", "systemd-sysv")


def unpack_tree(into: Path) -> None:
    """A fresh tree in the new folder ``into``, of the same suite as this machine.

    Takes a second; the first time half a minute, and the network. Raises CalledProcessError, whose notes
    hold the tool's own words.
    """
    into.mkdir(parents=True)
    _run("tar", "--directory", str(into), "--extract", "--file", str(_archive()))


def _archive() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nodeagent-tests"
    cache.mkdir(parents=True, exist_ok=True)
    what = hashlib.sha256(" ".join((SUITE, *PACKAGES)).encode()).hexdigest()[:12]
    archive = cache / f"{SUITE}-{what}.tar.zst"
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            unfinished = cache / f"unfinished-{archive.name}"
            _run(
                "mmdebstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(unfinished)
            )  # fmt: skip
            unfinished.rename(archive)
    return archive


def _run(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        error = subprocess.CalledProcessError(done.returncode, command)
        error.add_note(done.stderr)
        raise error
