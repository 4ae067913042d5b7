"""``[drivers.NAME]`` of nodeagent.toml: a form for each way to configure a driver, and its defaults."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import asdict

from nodeagent.toml.quantities import SECOND_NS, duration
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
    """``[drivers.kmsg]``. ``trust_userspace`` takes lines from user space for faults.

    Lines are taken as they come; a poll only finds out whether the reader still answers.
    """

    required: bool = True
    poll_interval_ns: Interval = field(default=5 * SECOND_NS, name="poll_interval")
    path: FilePath = "/dev/kmsg"
    trust_userspace: bool = False


class PreviousBootConfig(DriverConfig, frozen=True, kw_only=True):
    """``[drivers.previous_boot]``. ``path``: a folder of journals; ``window``: how much of the end."""

    path: FilePath = "/var/log/journal"
    window_ns: Annotated[int, duration(SECOND_NS, 7 * 24 * 3600 * SECOND_NS, '"1s" to "7d"')] = field(
        default=3600 * SECOND_NS, name="window"
    )


class BmcConfig(DriverConfig, frozen=True, kw_only=True):
    """``[drivers.bmc]``. ``fault_list``: whether to ask for Huawei's list, "auto": where the BMC is Huawei's.

    ``library`` has the calls by which ``path`` is opened and asked, "": the C library.
    """

    poll_interval_ns: Interval = field(default=30 * SECOND_NS, name="poll_interval")
    call_deadline_ns: Interval = field(default=60 * SECOND_NS, name="call_deadline")
    path: FilePath = "/dev/ipmi0"
    fault_list: Literal["auto", "always", "never"] = "auto"


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


InterfaceName = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"\A[^\s/:]+\Z")]
"""The name of a network interface (``dev_valid_name`` in net/core/dev.c of Linux), or of an RDMA device."""

Interfaces = Annotated[
    tuple[InterfaceName, ...],
    Meta(max_length=64, description='a list of names of network interfaces, such as ["bond0"]'),
]
ChipName = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"\A[!-+\--~]+\Z")]


class LinkConfig(DriverConfig, frozen=True, kw_only=True):
    """``[drivers.link]``. ``watch`` are patterns of further interfaces, ``expected_ports`` ought to be up.

    ``expected_rdma`` ports are right for this node, 0: any number is; each at ``expected_rate``, "": at any.
    ``chips`` says by the name of a port which chips use it, where PCI Express does not show it.
    """

    poll_interval_ns: Interval = field(default=5 * SECOND_NS, name="poll_interval")
    sysfs: FilePath = "/sys"
    watch: Interfaces = ()
    expected_ports: Interfaces = ()
    expected_rdma: Annotated[
        int, Meta(ge=0, le=MAX_DEVICES, description=f"a whole number up to {MAX_DEVICES}, 0 for any number")
    ] = 0
    expected_rate: Annotated[
        str, Meta(pattern=r"\A(?:[1-9][0-9]{0,4}G)?\Z", description='a rate such as "400G", or "" for any')
    ] = ""
    chips: Annotated[
        dict[str, tuple[ChipName, ...]],
        Meta(
            max_length=64,
            description='a table of lists of chips by the name of a port, such as { eth2 = ["npu0"] }',
        ),
    ] = field(default_factory=dict)


class NvidiaConfig(ChipsConfig, frozen=True, kw_only=True):
    """``[drivers.nvidia]``. ``driver_root``: of a driver in a root of its own, with library and tools.

    ``stall_deadline``: for so long no GPU may answer before all are UNKNOWN.

    A call for one GPU may hold up those for all others until its GSP is given up, 45 s at most
    (``_kgspRpcRecvPoll`` in kernel_gsp.c of NVIDIA's open modules waits one and a half default time-outs).
    """

    driver_root: OptionalPath = ""
    stall_deadline_ns: Interval = field(default=60 * SECOND_NS, name="stall_deadline")
