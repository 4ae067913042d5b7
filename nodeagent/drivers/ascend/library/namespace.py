"""Whose NPUs this process would take: asked before the library is initialised, which takes them at once.

The kernel driver gives each NPU to one mount namespace at a time: to the first whose process opens it, for
as long as that namespace lives; all others are refused (hicann/driver, src/sdk_driver/pbl/uda/uda_access.c:
uda_access_open, uda_occupy_dev_by_ns). Excepted is who it takes for the host's (uda_cur_is_admin there, and
run_in_normal_docker in pbl/runenv_config/docker_query.c):

- a process in the mount namespace of the host, whatever its user and its capabilities; or
- one of a privileged container: of the first user namespace, effective for every capability up to
  CAP_AUDIT_READ, with a /sys/fs/cgroup/memory that is not read-only where there is one, and, to
  docker_query.c, of user 0.

All else is an ordinary container to it, also a service whose unit asks systemd for a file system of its own.
Such a process of ours would take every NPU from the containers that are to work with them. This opens no
device, and calls nothing of the vendor's.
"""

import os
from pathlib import Path
from typing import Final

from nodeagent.core.model import NODE, Assertion
from nodeagent.drivers.api import Unavailable
from nodeagent.wire import Batch, Signal

CODE: Final = "private_mount_namespace"
"""The code of the node's fault, in ``agent.toml``."""

OVER: Final = Batch(signals=(Signal(device=NODE, code=CODE, assertion=Assertion.RECOVER),))
"""What is reported once the library is open."""

DEVICES: Final = Path("/dev")
MEMORY_CGROUP: Final = Path("/sys/fs/cgroup/memory")

FIRST_PID_NAMESPACE: Final = 0xEFFFFFFC
FIRST_USER_NAMESPACE: Final = 0xEFFFFFFD
"""The same in every kernel (include/linux/proc_ns.h: PROC_PID_INIT_INO, PROC_USER_INIT_INO)."""

PRIVILEGED: Final = (1 << 38) - 1
"""All capabilities up to CAP_AUDIT_READ (ka_system.c: ka_system_get_privileged_kernel_cap)."""

INIT: Final = "systemd"


def check(procfs: Path, devices: Path = DEVICES) -> None:
    """Raises ``Unavailable`` where there are NPUs that this process would take from others, or may take."""
    if not any(devices.glob("davinci*")):
        return
    try:
        is_safe = _shares_the_hosts_mounts(procfs) or _is_privileged(procfs)
    except (OSError, ValueError) as error:
        raise Unavailable(f"{_WOULD_TAKE}, as far as is known: {error}", code=CODE) from error
    if not is_safe:
        raise Unavailable(f"{_WOULD_TAKE}: it is not in the mount namespace of the host", code=CODE)


_WOULD_TAKE: Final = "the NPUs are let alone, for this process would take them from all containers"


def _shares_the_hosts_mounts(procfs: Path) -> bool:
    """Whether it does with process 1, if that is the host's.

    By the numbers of mounts, which anybody may read: each mount is in one namespace, and numbers are the
    kernel's. What /proc/1/ns/mnt names, only who may trace process 1 can read. A container that has booted an
    init of its own is a machine to what runs in it: the NPUs that it was given are its own.
    """
    if _number(procfs / "self/ns/pid") != FIRST_PID_NAMESPACE and not _is_booted(procfs):
        return False
    return not _mounts(procfs / "self/mountinfo").isdisjoint(_mounts(procfs / "1/mountinfo"))


def _is_booted(procfs: Path) -> bool:
    return (procfs / "1/comm").read_text().strip() == INIT


def _mounts(mountinfo: Path) -> set[str]:
    """Their numbers: the first field of each line (proc_pid_mountinfo(5))."""
    return {line.partition(" ")[0] for line in mountinfo.read_text(errors="replace").splitlines()}


def _is_privileged(procfs: Path) -> bool:
    status = dict(line.split(":", 1) for line in (procfs / "self/status").read_text().splitlines())
    effective = int(status["CapEff"], 16)
    user = int(status["Uid"].split()[0])
    return (
        _number(procfs / "self/ns/user") == FIRST_USER_NAMESPACE
        and user == 0
        and effective & PRIVILEGED == PRIVILEGED
        and not _is_read_only(MEMORY_CGROUP)
    )


def _is_read_only(folder: Path) -> bool:
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except FileNotFoundError:
        return False


def _number(namespace: Path) -> int:
    """The number in the link's text, ``kind:[number]``: a tree that stands for /proc can have it as well."""
    return int(namespace.readlink().name.partition("[")[2].rstrip("]"))
