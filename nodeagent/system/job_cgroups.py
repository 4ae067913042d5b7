"""The job of a process, by its cgroup: only if the job's manager itself has made that cgroup.

A user with a subtree of cgroups, as systemd gives to each user's manager, can make folders of any name in it.
So a name counts only

- at the place where its manager makes it, from the root of the hierarchy, and never below ``user.slice``;
- if each folder down to it belongs to root, and no other user may write in it. Slurm gives the folder of a
  step to the job's user (version 1): it is in the job's folder, which is root's.

Where the folders cannot be seen, as in a container with its own view, there is no proof and so no name. Root
of a container without a user namespace is root of the node. Nothing is changed here.

The places are those of Slurm (``src/plugins/cgroup/v1/xcgroup.c``, ``v2/cgroup_v2.c``: 20.11 to 26.05), the
kubelet (``pkg/kubelet/cm/cgroup_manager_linux.go``, both drivers, kind's ``--cgroup-root``), containerd,
CRI-O, Docker and Podman; ``PREFIX-ID.scope`` is the systemd driver of runc (``docs/systemd.md``) and crun.
"""

import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Final

from nodeagent.system.processes import read
from nodeagent.system.slurm_jobs import SLUID, job_by_record, recorded_number

_ROOT_UID: Final = 0
_SHOWN_DIGITS: Final = 12
"""So many digits of a container's id as the engines show."""

_NOT_OF_USERS: Final = r"(?!/user\.slice(?:/|$))"
_END: Final = r"(?=/|$)"
_SLICE: Final = r"(?:/[^/]+\.slice)"
_ID: Final = r"[0-9a-f]{64}"
_STEP: Final = r"(?:/step_(?P<step>\w+(?:\+\d+)?))?"
"""``+N``: a component of a heterogeneous job (``log_build_step_id_str`` of Slurm)."""

_POD: Final = r"(?P<pod>[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})"
"""systemd's slices have ``_`` in place of ``-``; a static pod's uid is a digest without either."""

_QOS: Final = r"(?:burstable|besteffort)"
_PODS: Final = r"(?:kubelet-)?kubepods"
_POD_SLICE: Final = rf"{_PODS}(?:-{_QOS})?-pod{_POD}\.slice"


@dataclass(frozen=True, slots=True)
class _Form:
    """A place where a manager makes cgroups. Of several names of a process the one of the highest ``rank``
    holds, of equals the innermost. ``inner`` is what of the same container lies behind the name: another
    manager may run there. None: what lies behind is the job's own.
    """

    pattern: re.Pattern[str]
    name: Callable[[re.Match[str]], str]
    rank: int
    inner: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class _Named:
    """``path`` leads to the folder that gives the name; ``uid`` is the user in it, None where none is."""

    job: str
    path: str
    rank: int
    uid: int | None


def _of_slurm(found: re.Match[str]) -> str:
    job, step = found["job"], found["step"]
    return f"slurm:{job}.{step}" if step else f"slurm:{job}"


def _of_pod(found: re.Match[str]) -> str:
    return f"pod:{found['pod'].replace('_', '-')}"


def _of_container(found: re.Match[str]) -> str:
    return f"container:{found['id'][:_SHOWN_DIGITS]}"


def _at(place: str) -> re.Pattern[str]:
    return re.compile(_NOT_OF_USERS + place + _END)


_IN_CONTAINER: Final = re.compile(rf"(?:/container{_END})?")
"""Podman and crun put a container's processes there."""

_IN_POD: Final = re.compile(rf"(?:/(?:\w[\w-]*-)?{_ID}(?:\.scope)?{_END})?(?:/container{_END})?")

_FORMS: Final = (
    # Slurm, version 1; with the node's name where several slurmd run on a machine.
    _Form(_at(rf"/slurm(?:_[^/]+)?/uid_(?P<uid>\d+)/job_(?P<job>\d+){_STEP}"), _of_slurm, 3),
    # Slurm, version 2: in system.slice, unless CgroupSlice of cgroup.conf(5) differs.
    _Form(_at(rf"{_SLICE}+/(?:[^/]+_)?slurmstepd\.scope/job_(?P<job>\d+){_STEP}"), _of_slurm, 3),
    # From Slurm 26.05 on by its SLUID, unless cgroup.conf has CgroupJobIdPaths=yes.
    _Form(_at(rf"{_SLICE}+/(?:[^/]+_)?slurmstepd\.scope/(?P<job>{SLUID}){_STEP}"), _of_slurm, 3),
    # The kubelet: by cgroupfs, by systemd, and by systemd with an engine that takes SLICE:PREFIX:ID, which is
    # systemd's, for the name of a folder.
    _Form(_at(rf"(?:/kubelet)?/kubepods(?:/{_QOS})?/pod{_POD}"), _of_pod, 2, _IN_POD),
    _Form(
        _at(rf"(?:/kubelet\.slice)?/{_PODS}\.slice(?:/{_PODS}-{_QOS}\.slice)?/{_POD_SLICE}"),
        _of_pod,
        2,
        _IN_POD,
    ),
    _Form(
        _at(rf"(?:/system\.slice(?:/[^/]+\.service)?)?/{_POD_SLICE}:[\w-]+:{_ID}"),
        _of_pod,
        2,
        _IN_CONTAINER,
    ),
    # Engines: by systemd; by cgroupfs in a folder such as docker, libpod_parent, a namespace of containerd.
    _Form(
        _at(rf"{_SLICE}*/(?:docker|crio|cri-containerd|nerdctl|libpod)-(?P<id>{_ID})\.scope"),
        _of_container,
        1,
        _IN_CONTAINER,
    ),
    _Form(_at(rf"/[^/]+/(?:libpod-|crio-)?(?P<id>{_ID})"), _of_container, 1, _IN_CONTAINER),
)


_BY_SLUID: Final = re.compile(rf"slurm:({SLUID})(\.\S+)?")


def job_of_process(procfs: Path, pid: int, uid: int | None = None) -> str:
    """``slurm:JOB.STEP``, ``pod:UID`` or ``container:ID``, the first of these that is proven, else "".

    A job of Slurm whose cgroup has its SLUID, or none, has its number by the prolog's record; without that
    JOB is the SLUID, or the process has no job of Slurm. ``procfs`` is ``proc`` of a root whose cgroups are
    in ``sys/fs/cgroup``. With ``uid`` a job of Slurm is one of that user alone. Raises ``OSError`` once the
    process has ended, or where it may not be looked at.
    """
    root = procfs.parent
    name = job_of(read(procfs / str(pid) / "cgroup"), root / "sys/fs/cgroup", uid)
    if not name.startswith("slurm:"):
        return job_by_record(procfs, pid) or name
    found = _BY_SLUID.fullmatch(name)
    number = "" if found is None else recorded_number(root, found[1])
    return name if found is None or not number else f"slurm:{number}{found[2] or ''}"


def job_of(text: str, cgroupfs: Path, uid: int | None = None) -> str:
    """As ``job_of_process``, from the text of its file ``cgroup``, with a line for each hierarchy.

    Only a line feed ends a line: the kernel allows none in the name of a cgroup (``cgroup_mkdir`` of
    kernel/cgroup/cgroup.c), and all else that ``splitlines`` takes for an end may be in one that a user made.
    """
    found: list[_Named] = []
    for line in text.split("\n"):
        _, _, place = line.partition(":")
        controllers, _, path = place.partition(":")
        proven = takewhile(partial(_is_proven, _hierarchy(cgroupfs, controllers)), _names(path))
        found += [each for each in reversed(list(proven)) if uid is None or each.uid in (None, uid)]
    return max(found, key=lambda each: each.rank).job if found else ""


def _names(path: str) -> Iterator[_Named]:
    """From the outermost inwards: what runs in a container may be a manager itself."""
    at = 0
    while True:
        matches = ((form, form.pattern.match(path, at)) for form in _FORMS)
        form, found = next((each for each in matches if each[1] is not None), (None, None))
        if form is None or found is None:
            return
        user = found.groupdict().get("uid")
        yield _Named(form.name(found), path[: found.end()], form.rank, None if user is None else int(user))
        if form.inner is None:
            return
        behind = form.inner.match(path, found.end())
        at = found.end() if behind is None else behind.end()


def _is_proven(hierarchy: Path, named: _Named) -> bool:
    """Whether only root can have made the folder that gives the name."""
    folder, names = hierarchy, named.path.split("/")[1:]
    for name in names:
        if name in ("", ".", ".."):
            return False
        folder /= name
        try:
            found = folder.lstat()
        except OSError:
            return False
        is_of_step = folder.name.startswith("step_") and name is names[-1]
        owners = (_ROOT_UID, named.uid) if is_of_step else (_ROOT_UID,)
        others_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners or others_write:
            return False
    return True


def _hierarchy(cgroupfs: Path, controllers: str) -> Path:
    """Where the hierarchy is mounted, as systemd does it (docs/CGROUP_DELEGATION.md): each of version 1 in a
    folder of its own, and version 2 in ``unified``.
    """
    if controllers:
        return cgroupfs / controllers.removeprefix("name=")
    unified = cgroupfs / "unified"
    return unified if unified.is_dir() else cgroupfs
