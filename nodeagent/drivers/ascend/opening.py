"""Whether libdcmi can and may be opened: its file, the mount namespace, the device files, and what PCI lists.

**The file.** The configured path alone; else each folder of LD_LIBRARY_PATH, what ldconfig knows, and the
folders of the driver's installer. It is opened lazily and globally, because the vendor's libraries look for
each other's symbols.

**The mount namespace** is checked before the library is initialised. The kernel driver gives each NPU to one
mount namespace at a time: the first whose process opens it, for as long as that namespace exists. All others
are refused (hicann/driver, src/sdk_driver/pbl/uda/uda_access.c: uda_access_open, uda_occupy_dev_by_ns). Two
kinds of processes count as the host's (uda_cur_is_admin there, and run_in_normal_docker in
pbl/runenv_config/docker_query.c):

- a process in the mount namespace of the host, whatever its user and its capabilities; and
- a process of a privileged container: in the first user namespace, with every effective capability up to
  CAP_AUDIT_READ, with a /sys/fs/cgroup/memory that is not read-only if it exists, and, for docker_query.c,
  with user 0.

Any other process is an ordinary container to the driver, also a service for which systemd makes a file system
of its own. Such a process would take every NPU away from the containers.

**The device files** are tried after the library has failed, because it answers only "inner error".

**PCI** shows NPUs that the library does not list. The driver shows a process once which chips exist
(ascend_hal/pbl/uda/uda_user_kernel_api.c, ``uda_init``). The library lists those that had started when it was
initialised. A chip that appears later is found only by another process.
"""

import ctypes
import os
import platform
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from nodeagent.core.model import NODE, Assertion
from nodeagent.drivers.api import Unavailable
from nodeagent.drivers.shared.denied import denials
from nodeagent.drivers.shared.pci import PROCESSING_ACCELERATOR, Bus, PciFunction
from nodeagent.wire import Batch, Missing, Signal

USUAL_FOLDERS: Final = (
    Path("/usr/local/dcmi"),
    Path("/usr/local/Ascend/driver/lib64"),
    Path("/usr/local/Ascend/driver/lib64/driver"),
    Path("/usr/local/Ascend/driver/lib64/common"),
)

_ELF_MAGIC: Final = b"\x7fELF"
_MACHINES: Final[Mapping[int, str]] = {0x03: "i686", 0x28: "armv7l", 0x3E: "x86_64", 0xB7: "aarch64"}
"""``e_machine`` of elf(5), by the name that uname(1) gives such a machine."""

_dlopen: Final = ctypes.CDLL(None).dlopen
_dlopen.argtypes, _dlopen.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
_dlerror: Final = ctypes.CDLL(None).dlerror
_dlerror.argtypes, _dlerror.restype = (), ctypes.c_char_p


class NotLoaded(Unavailable):
    """There is no such library, or none that this process can load."""


def load(name: str, configured: str, environ: Mapping[str, str] = os.environ) -> ctypes.CDLL:
    """Open it. Raises ``NotLoaded``, ``absent`` if it is nowhere to be found."""
    if configured:
        if (found := _find([Path(configured)])) is None:
            raise NotLoaded(f"{configured}: there is no such library", absent=True)
        return _open(str(found))
    listed = [Path(folder) / name for folder in environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    if (found := _find(listed)) is not None:
        return _open(str(found))
    try:
        return _open(name)
    except NotLoaded as error:
        if f"{name}: cannot open shared object file: No such file" not in str(error):
            raise
    if (found := _find([folder / name for folder in USUAL_FOLDERS])) is not None:
        return _open(str(found))
    raise NotLoaded(f"{name} is not installed", absent=True)


def _find(paths: Iterable[Path]) -> Path | None:
    """The first of these that is there, if it can be read. Raises ``NotLoaded``."""
    for path in paths:
        try:
            is_there = path.is_file()
        except PermissionError as error:
            raise NotLoaded(f"{path}: {error.strerror}", errno=error.errno or 0) from error
        if is_there:
            _check_readable(path)
            return path
    return None


def _check_readable(path: Path) -> None:
    """Report clearly what dlopen reports cryptically."""
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError as error:
        raise NotLoaded(f"{path}: {error.strerror}", errno=error.errno or 0) from error
    if len(head) < 20 or not head.startswith(_ELF_MAGIC):
        raise NotLoaded(f"{path} is no shared library")
    machine = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
    built_for = _MACHINES.get(machine, f"machine {machine:#x}")
    if built_for != platform.machine():
        raise NotLoaded(f"{path} is built for {built_for}, this machine is {platform.machine()}")


def _open(path: str) -> ctypes.CDLL:
    """By itself ctypes binds every symbol at once, also those that are never called."""
    handle = _dlopen(os.fsencode(path), os.RTLD_LAZY | os.RTLD_GLOBAL)
    if handle is None:
        raise NotLoaded(f"{path} cannot be loaded: {os.fsdecode(_dlerror() or b'')}")
    return ctypes.CDLL(path, handle=handle)


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


def check_namespace(procfs: Path, devices: Path = DEVICES) -> None:
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
    kernel's. /proc/1/ns/mnt can be read only with the right to trace process 1. A container that has booted
    an init of its own is a machine to what runs in it: the NPUs that it was given are its own.
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
    """The number in the link's text, ``kind:[number]``: a tree that replaces /proc can have it as well."""
    return int(namespace.readlink().name.partition("[")[2].rstrip("]"))


FOR_ALL = ("davinci_manager", "hisi_hdc", "devmm_svm")


def explained(error: Unavailable, devices: Path = Path("/dev")) -> Unavailable:
    """The same failure, with what denies the devices that are there."""
    present = [path for path in (*(devices / name for name in FOR_ALL), *_chips(devices)) if path.exists()]
    if isinstance(error, NotLoaded) or not (denied := denials(present)):
        return error
    return Unavailable(f"{error}; {denied}", errno=error.errno, absent=error.absent)


def _chips(devices: Path) -> list[Path]:
    """The first is enough: all are given to their group together."""
    return sorted(devices.glob("davinci[0-9]*"))[:1]


KERNEL_DRIVER: Final = "devdrv_device_driver"
"""The vendor's, as sysfs names it."""
OURS_OR_NONE: Final = ("", KERNEL_DRIVER)

DEVICE_NODE: Final = Path("/dev/davinci_manager")
"""A machine whose driver has found NPUs has it, also where they are on no PCI bus."""


def listed_by_pci(bus: Bus, before: Sequence[PciFunction] = ()) -> Sequence[PciFunction]:
    """The NPUs that PCI lists and those that it listed ``before``, but for virtual ones, and for those that
    another driver has taken, such as vfio-pci for a virtual machine.

    Raises ``Unavailable``: what cannot be counted cannot be missed.
    """
    try:
        found = bus.functions((PROCESSING_ACCELERATOR,))
        # One that no driver has is missing all the same.
        ours = [each for each in found if not each.virtual and bus.driver(each.address) in OURS_OR_NONE]
    except OSError as error:
        raise Unavailable(f"what PCI lists cannot be read: {error}", errno=error.errno or 0) from error
    here = {function.address for function in found}
    gone = [function for function in before if function.address not in here]
    return sorted([*ours, *gone], key=lambda function: function.address)


def not_opened(error: Unavailable, listed: Sequence[PciFunction]) -> Unavailable:
    """What it means that the library cannot be opened.

    Without it nothing shows the NPUs that PCI lists: each of them is missing. One that is loaded and does not
    start shows nothing about any chip; but without chips it never starts, and may be installed all the same.
    """
    if not listed:
        is_absent = error.absent or not (isinstance(error, NotLoaded) or DEVICE_NODE.exists())
        return Unavailable(str(error), errno=error.errno, absent=is_absent)
    if not isinstance(error, NotLoaded):
        return error
    shown = f"PCI lists {len(listed)} NPUs, but {error}"
    missing_chips = [Missing(device=function.address, reason=shown) for function in listed]
    return Unavailable(shown, errno=error.errno, missing=missing_chips)


def missing_chips(listed: Sequence[PciFunction], addresses: Collection[str]) -> tuple[Missing, ...]:
    """The missing chips, by address, which is the name of a slot. ``addresses``: of the chips that the
    library shows, "" of one that cannot be asked where it sits.
    """
    unplaced = sum(1 for address in addresses if not address)
    lost = [function.address for function in listed if function.address not in addresses]
    if len(lost) <= unplaced:
        return ()
    reason = f"PCI lists {len(listed)} NPUs, the library {len(addresses)}, and not this one"
    if unplaced:
        reason += f", unless it is one of {unplaced} that cannot be asked where they sit"
    return tuple(Missing(device=address, reason=reason) for address in lost)
