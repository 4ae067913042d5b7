"""With what a folder of ``--state`` ends: with the container, the pod or the memory of the machine.

Counts over placements need a folder that the next placement finds. Most file systems do not show whether it
will. Those that cannot outlive a placement are known by the mount that the folder lies on, as
``/proc/self/mountinfo`` lists it (proc(5)). Of any other nothing is claimed: a local disk may be one that
moves with the pod. Nothing is opened or changed here.
"""

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

_MOUNTS: Final = Path("/proc/self/mountinfo")

_EMPTY_DIR: Final = "/volumes/kubernetes.io~empty-dir/"
"""In the source of each emptyDir that the kubelet keeps on a disk: ``emptyDirPluginName`` and ``getPath`` of
pkg/volume/emptydir/empty_dir.go of Kubernetes.
"""

_BY_TYPE: Final = {
    "overlay": "in the root of a container (overlay), which ends with the container",
    "fuse.fuse-overlayfs": "in the root of a container (fuse-overlayfs), which ends with the container",
    "aufs": "in the root of a container (aufs), which ends with the container",
    "tmpfs": "in memory (tmpfs), which ends with the container or the pod, and is of this node alone",
    "ramfs": "in memory (ramfs), which ends with the container or the pod, and is of this node alone",
}

_OCTAL: Final = re.compile(r"\\([0-7]{3})")


class _Mount(NamedTuple):
    source: str
    """The folder of the file system that is mounted."""

    target: str
    file_system: str


def ends_early(folder: Path) -> str:
    """Where the folder lies and with what it ends, "" where it may outlive the placement."""
    try:
        listed = _MOUNTS.read_text(errors="surrogateescape")
        return ends_early_by(listed, os.path.realpath(folder))
    except OSError:
        return ""


def ends_early_by(mountinfo: str, folder: str) -> str:
    """``folder`` has no link in it."""
    mounts = [each for line in mountinfo.splitlines() if (each := _mount(line)) is not None]
    above = [each for each in mounts if _is_below(folder, each.target)]
    if not above:
        return ""
    # Of two mounts at one place the later one is seen.
    mount = max(reversed(above), key=lambda each: len(each.target))
    if _EMPTY_DIR in f"{mount.source}/":
        return "in an emptyDir, which outlives the container and ends with the pod"
    return _BY_TYPE.get(mount.file_system, "")


def _mount(line: str) -> _Mount | None:
    """None of a line that has another form."""
    fields, separator, rest = line.partition(" - ")
    words = fields.split(" ")
    if not separator or len(words) < 6:
        return None
    return _Mount(_plain(words[3]), _plain(words[4]), rest.partition(" ")[0])


def _plain(text: str) -> str:
    """The kernel writes blanks and backslashes of a path as three octal digits."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)


def _is_below(folder: str, target: str) -> bool:
    return target == "/" or folder == target or folder.startswith(f"{target}/")
