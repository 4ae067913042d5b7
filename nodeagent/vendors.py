"""One record for each driver: its module, the form of its section, and what the daemon must know of it.

A new driver is its folder below ``drivers``, its table in ``fault_codes``, its section in
``packaging/nodeagent.toml``, and one record here. A driver with keys of its own has its form here too. This
module imports no driver.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import asdict

from nodeagent.core.model import KERNEL_LOG, PREVIOUS_BOOT, Kind
from nodeagent.toml.values import SECOND_NS, FilePath, OptionalPath, ServiceUnit, duration
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
    """``[drivers.link]``. ``watch`` are patterns of further interfaces, ``expected_ports`` must be up.

    ``expected_rdma`` ports are right for this node, 0: any number is; each at ``expected_rate``, "": at any.
    ``chips`` maps a port to the chips that use it, where PCI Express does not show them.
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


HELLO_DEADLINE_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetTraits:
    """How the devices of a vendor are reset, and what is asked of its tools around that."""

    module: str
    """Imported only in the process of a reset: see ``drivers.shared.resetting``."""

    needs_closed: bool
    """No process may have the devices open, so the worker ends; else it only stops polling them."""

    report: tuple[str, ...]
    """The tool that shows all it knows within seconds."""

    no_report_for: frozenset[str] = frozenset()
    """Codes, without what refines them, for which that tool is not run."""

    bug_report: tuple[str, ...] = ()
    """The command for the vendor's support, which the path of a log follows; it may add ".gz" to that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverTraits:
    module: str
    """Imported only in the worker that hosts it: see ``drivers.api``."""

    section: type[DriverConfig]
    """Its part of the configuration."""

    lists: Kind | None = None
    """The kind of its devices, None: it has none."""

    library: str = ""
    """The file name of the vendor's library."""

    has_unit: bool = False
    """Under systemd a unit of its own hosts the worker."""

    hello_deadline_s: float = HELLO_DEADLINE_S
    """How long the first answer of its worker may take."""

    absent_retry_s: float | None = 300.0
    """Where it is absent and not required it is looked for again after so long, None: not in this boot."""

    events_lost_code: str = ""
    """The code of the kernel line that reports a loss of events."""

    reset: ResetTraits | None = None


_ASCEND = DriverTraits(
    module="nodeagent.drivers.ascend.driver",
    section=ChipsConfig,
    lists=Kind.CHIP,
    library="libdcmi.so",
    # See drivers.ascend.opening.
    has_unit=True,
    # While chips start, the first call into the driver sleeps for up to 150 s in the kernel
    # (sdk_driver/pbl/uda/uda_access.c, uda_wait_all_phy_startup); then dcmi_init waits about two seconds for
    # the MCU of each card that is silent.
    hello_deadline_s=180.0,
    reset=ResetTraits(
        module="nodeagent.drivers.ascend.reset",
        needs_closed=False,
        report=("npu-smi", "info"),
    ),
)

_BMC = DriverTraits(
    module="nodeagent.drivers.bmc.driver",
    section=BmcConfig,
    # Only of an emulated node.
    library="libbmc.so",
)

_HOST = DriverTraits(module="nodeagent.drivers.host.driver", section=HostConfig, lists=Kind.HOST)

_KMSG = DriverTraits(module="nodeagent.drivers.kmsg.driver", section=KmsgConfig)

_LINK = DriverTraits(module="nodeagent.drivers.link.driver", section=LinkConfig, lists=Kind.LINK)

_NVIDIA = DriverTraits(
    module="nodeagent.drivers.nvidia.driver",
    section=NvidiaConfig,
    lists=Kind.CHIP,
    library="libnvidia-ml.so.1",
    # NVML initialises GPUs that nothing keeps initialised one after the other, and one whose GSP does not
    # start holds up the others for 45 s.
    hello_deadline_s=180.0,
    reset=ResetTraits(
        module="nodeagent.drivers.nvidia.reset",
        needs_closed=True,
        report=("nvidia-smi", "-q"),
        # A controller of the chip does not answer, so that the tool would hang in the kernel, with the device
        # open that is to be reset.
        no_report_for=frozenset({"XID_62", "XID_109", "XID_119", "XID_120"}),
        bug_report=("nvidia-bug-report.sh", "--safe-mode", "--output-file"),
    ),
)

_PREVIOUS_BOOT = DriverTraits(
    module="nodeagent.drivers.kmsg.previous_boot", section=PreviousBootConfig, absent_retry_s=None
)

_UNIFIEDBUS = DriverTraits(
    module="nodeagent.drivers.ascend.unifiedbus",
    section=VendorConfig,
    lists=Kind.UNIFIEDBUS,
    library="liblingqu-dcmi.so",
    has_unit=True,
    # Only another process can read all active faults from its library: see drivers.ascend.unifiedbus.
    events_lost_code="ASC_LQ_QUEUE_FULL",
)

DRIVERS: Final[Mapping[str, DriverTraits]] = MappingProxyType(
    {
        "ascend": _ASCEND,
        "bmc": _BMC,
        "host": _HOST,
        KERNEL_LOG: _KMSG,
        "link": _LINK,
        "nvidia": _NVIDIA,
        PREVIOUS_BOOT: _PREVIOUS_BOOT,
        "unifiedbus": _UNIFIEDBUS,
    }
)
"""The drivers by the name of their source; that of a driver whose devices can be reset is the vendor's."""

RESETS: Final[Mapping[str, ResetTraits]] = MappingProxyType(
    {vendor: traits.reset for vendor, traits in DRIVERS.items() if traits.reset is not None}
)
