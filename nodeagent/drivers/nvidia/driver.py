"""The driver ``nvidia``: loads NVML, lists the GPUs, compares them with PCI, polls each, and receives Xids.

    NVML ──list──> population (and which GPUs of PCI are missing)
      ├──poll of a GPU──> active codes, readings, users
      └──event set, a thread a GPU──> Xids, handed over at once

Listing asks no GPU: each is identified when it is polled, so a GPU that hangs leaves the others listed. The
first listing takes as long as opening one GPU after the other. If the driver behind the library is unloaded
or replaced, every handle of the process is void: the source reports the reason, the process ends, and the
next one starts from the beginning.
"""

import queue
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import pynvml

from nodeagent.core.model import NODE, Assertion
from nodeagent.drivers.api import CallFailed, Driver, Emit, Population, Reading, Unavailable
from nodeagent.drivers.nvidia import identity
from nodeagent.drivers.nvidia.checks.fabric import MANAGER_DOWN, Imex, Manager
from nodeagent.drivers.nvidia.checks.nvlink import Peers
from nodeagent.drivers.nvidia.events import Doubles, EventOwner
from nodeagent.drivers.nvidia.gpu import Gpu
from nodeagent.drivers.nvidia.missing import Slots, taken
from nodeagent.drivers.nvidia.nvml import library
from nodeagent.drivers.nvidia.nvml.baseline import GpuBaselines
from nodeagent.drivers.nvidia.nvml.calls import STALE, DriverGone, GpuFault, name_of
from nodeagent.drivers.nvidia.part import Surroundings
from nodeagent.wire import MAX_DEVICES, Batch, Configure, Device, Pattern, Signal

_NVLINK_DISABLED: Final = "NvLinkDisable: 1"
"""A line of its parameters: the option NVreg_NvLinkDisable, by which it trains no NVLink (nv-reg.h of
NVIDIA's open modules; ``nv_procfs_read_params`` in nv-procfs.c prints them).
"""


def switched_off(procfs: Path) -> bool:
    """Whether NVLink is switched off for all GPUs."""
    try:
        lines = (procfs / "driver/nvidia/params").read_text(errors="replace").splitlines()
    except OSError:
        return False
    return _NVLINK_DISABLED in map(str.strip, lines)


DISCOVERY_LIMIT_S: Final = 4.0
"""Once no GPU was opened or identified for so long, the others are listed without an identity.

Where nothing keeps the GPUs initialised, the first handle of each initialises it: one to three seconds, one
GPU after the other, and every other call waits meanwhile (``rm_init_adapter`` in osapi.c of NVIDIA's open
modules takes the lock of all of RM). A process that ends in it lets them be de-initialised again.
"""

TRAINED_S: Final = 300.0
"""So long after the boot links may be down because the fabric manager has not trained them yet."""

FAILURES: Final = 3
"""So many listings that fail one after the other, and another process opens the library."""


def create(configure: Configure, emit: Emit) -> Driver:
    """``config`` keys: ``library`` ("": as the loader finds it), ``driver_root``, ``sysfs``, ``procfs``."""
    return NvidiaDriver(
        path=str(configure.config.get("library", "")),
        driver_root=str(configure.config.get("driver_root", "")),
        sysfs=Path(str(configure.config.get("sysfs", "/sys"))),
        procfs=Path(str(configure.config.get("procfs", "/proc"))),
        skip=frozenset(configure.skip),
        baselines=GpuBaselines(configure.baselines, configure.open_codes),
        emit=emit,
    )


class NvidiaDriver:
    """Its devices are the GPUs. Those of their MIG instances that an Xid named, the core makes."""

    def __init__(
        self,
        *,
        path: str,
        driver_root: str,
        sysfs: Path,
        procfs: Path,
        skip: frozenset[str],
        baselines: GpuBaselines,
        emit: Emit,
    ) -> None:
        self._path = path
        self._driver_root = driver_root
        self._procfs = procfs
        self._skip = skip
        self._baselines = baselines
        self._emit = emit
        self._slots = Slots(sysfs)
        self._manager = Manager(procfs, sysfs, driver_root)
        self._manager_runs: bool | None = None
        self._imex = Imex(driver_root)
        self._imex_reported: dict[str, bool] = {}
        self._uses_links = True
        self._versions: Mapping[str, str] = {}
        self._gpus: dict[str, Gpu] = {}
        self._skipped: dict[str, Device] = {}
        self._gone: DriverGone | None = None
        self._taken: frozenset[str] | None = None
        self._listings = 0
        self._failures = 0

    def open(self) -> None:
        self._slots.look()
        self._taken = taken(self._procfs)
        library.load(self._path, self._slots.expected, self._taken, self._driver_root)
        self._uses_links = not switched_off(self._procfs)
        try:
            self._versions = identity.versions()
        except pynvml.NVMLError as error:
            raise library.unavailable(error.value, self._slots.expected) from None

    def devices(self) -> Population:
        """Raises ``Unavailable`` where the driver has gone: this process has nothing more to read."""
        if self._gone is not None:
            raise library.unavailable(self._gone.errno, self._slots.expected, self._slots.shown)
        self._compare_with_the_kernel()
        count = self._count()
        if count != len(self._gpus) + len(self._skipped):
            self._begin(count)
        self._listings += 1
        if self._listings == 2:
            self._say_that_it_is_open()
        if self._listings >= 2:
            self._watch_the_fabric_manager()
            self._watch_imex()
        devices = [*(gpu.device for gpu in self._gpus.values()), *self._skipped.values()]
        return Population(
            devices=sorted(devices, key=lambda device: int(device.device.removeprefix("gpu"))),
            missing=self._slots.missing(devices, self._taken),
            readings={"refused_values_total": float(sum(gpu.refused for gpu in self._gpus.values()))},
        )

    def poll(self, device: str) -> Reading:
        gpu = self._gpus.get(device)
        if gpu is None:
            raise CallFailed(f"NVML lists no {device!r} any more")
        try:
            return gpu.poll()
        except DriverGone as gone:
            self._gone = gone
            raise

    def reload(self, patterns: Sequence[Pattern]) -> None:
        """There are none here."""

    def close(self) -> None:
        """NVML is not shut down: it crashes where that is done under a call, and threads that wait for events
        are in one. The process ends, which lets go of all that it has open.
        """
        for gpu in self._gpus.values():
            gpu.end()

    # ------------------------------------------------------------------ listing

    def _compare_with_the_kernel(self) -> None:
        """NVML goes on listing the GPUs that there were when it was opened."""
        now = taken(self._procfs)
        if self._taken is None or now is None or now == self._taken:
            return
        changes = [f"has taken {address}" for address in sorted(now - self._taken)]
        changes += [f"has let go {address}" for address in sorted(self._taken - now)]
        raise Unavailable(f"NVML must be opened again: the driver {', '.join(changes)}")

    def _count(self) -> int:
        """Asks no GPU. A library that goes on failing here has lost the driver it was opened with."""
        try:
            count = int(pynvml.nvmlDeviceGetCount())
        except pynvml.NVMLError as error:
            self._failures += 1
            if error.value in STALE or self._failures >= FAILURES:
                raise library.unavailable(error.value, self._slots.expected, self._slots.shown) from None
            raise CallFailed(f"nvmlDeviceGetCount: {name_of(error.value)}", errno=error.value) from None
        self._failures = 0
        if count > MAX_DEVICES:
            raise CallFailed(f"nvmlDeviceGetCount: {count} GPUs; at most {MAX_DEVICES} can be")
        return count

    def _begin(self, count: int) -> None:
        """List them again: their indices may mean other GPUs now."""
        for gpu in self._gpus.values():
            gpu.end()
        around = Surroundings(
            procfs=self._procfs,
            pci=self._slots.functions,
            switches=bool(self._slots.switches),
            is_shared=self._manager.is_shared,
            uses_links=lambda: self._uses_links,
            links_may_train=self._links_may_train,
            versions=self._versions,
            baselines=self._baselines,
            peers=Peers(),
            doubles=Doubles(),
            owner_of=self._owner_of,
            report=self._report_of_a_gpu,
        )
        names = {identity.name_of(index): index for index in range(count)}
        self._skipped = {name: identity.unread(index) for name, index in names.items() if name in self._skip}
        gpus = {name: Gpu(index, around) for name, index in names.items() if name not in self._skip}
        self._identify(list(gpus.values()))
        self._gpus = gpus

    def _identify(self, gpus: Sequence[Gpu]) -> None:
        """All at once, and only as long as they get on: one that hangs must not hide the others."""
        ended: queue.SimpleQueue[int] = queue.SimpleQueue()
        for gpu in gpus:
            target = partial(self._try_identify, gpu, ended)
            threading.Thread(target=target, name="identify", daemon=True).start()
        left = len(gpus)
        with suppress(queue.Empty):
            while left:
                left -= ended.get(timeout=DISCOVERY_LIMIT_S)

    def _try_identify(self, gpu: Gpu, ended: "queue.SimpleQueue[int]") -> None:
        """Its own polls go on asking, and report why it fails. ``ended`` gets 0 once open, 1 at the end."""
        try:
            gpu.open()
            ended.put(0)
            gpu.identify()
        except DriverGone as gone:
            self._gone = gone
        except (GpuFault, CallFailed) as failure:
            print(f"{gpu.device.device} cannot be identified: {failure}", file=sys.stderr, flush=True)
        finally:
            ended.put(1)

    def _say_that_it_is_open(self) -> None:
        """The first listing is the worker's greeting, before which nothing may be reported."""
        over = [
            Signal(device=NODE, code=code, assertion=Assertion.RECOVER) for code in library.CODES.values()
        ]
        self._emit.enqueue(Batch(signals=tuple(over)))

    def _watch_the_fabric_manager(self) -> None:
        """Reported as it changes, and once at the start."""
        runs = self._manager.look(switches=bool(self._slots.switches))
        if runs is not None and runs is not self._manager_runs:
            self._manager_runs = runs
            self._report_of_the_node(MANAGER_DOWN, active=not runs)

    def _watch_imex(self) -> None:
        """Reported as it changes, and once at the start."""
        for code, active in self._imex.look().items():
            if self._imex_reported.get(code) is not active:
                self._imex_reported[code] = active
                self._report_of_the_node(code, active=active)

    def _report_of_the_node(self, code: str, *, active: bool) -> None:
        assertion = Assertion.OCCUR if active else Assertion.RECOVER
        self._report(Signal(device=NODE, code=code, assertion=assertion))

    def _links_may_train(self) -> bool:
        """Those to switches: soon after the boot, and while the fabric manager, which trains them, does not
        run.
        """
        if not self._slots.switches:
            return False
        return time.clock_gettime(time.CLOCK_BOOTTIME) < TRAINED_S or self._manager_runs is False

    def _owner_of(self, handle: Any) -> EventOwner | None:
        """Whose event it is that names another GPU than the one whose set it came by; from any thread."""
        try:
            uuid = identity.normal_uuid(str(pynvml.nvmlDeviceGetUUID(handle)))
        except (pynvml.NVMLError, UnicodeDecodeError):
            return None
        gpu = next((gpu for gpu in self._gpus.values() if uuid and gpu.device.identity == uuid), None)
        return None if gpu is None else gpu.owner()

    def _report_of_a_gpu(self, signal: Signal) -> None:
        """Its state is asked for at the next poll."""
        gpu = self._gpus.get(signal.device.partition("/")[0])
        if gpu is not None:
            gpu.news()
        self._report(signal)

    def _report(self, signal: Signal) -> None:
        self._emit.enqueue(Batch(signals=(signal,)))
