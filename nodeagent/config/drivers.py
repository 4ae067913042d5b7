"""``[drivers.NAME]`` of nodeagent.toml: a form for each way to configure a driver, and its defaults."""

from typing import Annotated

from msgspec import Meta, Struct, field
from msgspec.structs import asdict

from nodeagent.core.catalog.catalog import SECOND_NS
from nodeagent.toml.quantities import duration
from nodeagent.toml.texts import FilePath, OptionalPath, ServiceUnit
from nodeagent.wire import MAX_DEVICES, Setting

Interval = Annotated[int, duration(SECOND_NS // 100, 3600 * SECOND_NS, '"10ms" to "1h"')]


class DriverConfig(Struct, frozen=True, kw_only=True):
    """``[drivers.NAME]``. A lost ``required`` source makes the node UNKNOWN."""

    enabled: bool = True
    required: bool = False
    poll_interval_ns: Interval = field(default=SECOND_NS, name="poll_interval")
    call_deadline_ns: Interval = field(default=5 * SECOND_NS, name="call_deadline")
    library: OptionalPath = ""

    def for_driver(self) -> dict[str, Setting]:
        """The keys that are the driver's own business, and not its supervisor's."""
        return {key: value for key, value in asdict(self).items() if key not in _NOT_THE_DRIVERS}


_NOT_THE_DRIVERS = frozenset(DriverConfig.__struct_fields__) - {"library"} | {
    "stall_deadline_ns",
    "expected_chips",
}


class KmsgConfig(DriverConfig, frozen=True, kw_only=True):
    """``[drivers.kmsg]``. ``trust_userspace`` takes lines from user space for faults."""

    required: bool = True
    path: FilePath = "/dev/kmsg"
    trust_userspace: bool = False


class VendorConfig(DriverConfig, frozen=True, kw_only=True):
    """``[drivers.unifiedbus]``: a vendor's library, and what the kernel logs about it.

    ``library`` "" is found as the vendor's own tools find it.
    """

    sysfs: FilePath = "/sys"
    procfs: FilePath = "/proc"


class HostConfig(DriverConfig, frozen=True, kw_only=True):
    """``[drivers.host]``. ``root`` is that of the node's file system. ``services`` are watched in addition to
    those that the node's accelerators need, ``ignored_services`` never.
    """

    poll_interval_ns: Interval = field(default=30 * SECOND_NS, name="poll_interval")
    sysfs: FilePath = "/sys"
    procfs: FilePath = "/proc"
    root: FilePath = "/"
    services: tuple[ServiceUnit, ...] = ()
    ignored_services: tuple[ServiceUnit, ...] = ()


class ChipsConfig(VendorConfig, frozen=True, kw_only=True):
    """``[drivers.ascend]``. ``expected_chips`` are right for this node, 0: any number is."""

    expected_chips: Annotated[
        int, Meta(ge=0, le=MAX_DEVICES, description=f"a whole number up to {MAX_DEVICES}, 0 for any number")
    ] = 0


class NvidiaConfig(ChipsConfig, frozen=True, kw_only=True):
    """``[drivers.nvidia]``. ``driver_root``: of a driver in a root of its own, with library and tools.

    ``stall_deadline``: for so long no GPU may answer before all are UNKNOWN.

    A call for one GPU may hold up those for all others until its GSP is given up, 45 s at most
    (``_kgspRpcRecvPoll`` in kernel_gsp.c of NVIDIA's open modules waits one and a half default time-outs).
    """

    driver_root: OptionalPath = ""
    stall_deadline_ns: Interval = field(default=60 * SECOND_NS, name="stall_deadline")
