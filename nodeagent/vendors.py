"""What the daemon knows of each driver beyond its folder: one record each. It imports none of them.

A new driver is its folder below ``drivers``, its table in ``fault_codes``, its section in
``packaging/nodeagent.toml``, and one record here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from nodeagent.config.drivers import (
    BmcConfig,
    ChipsConfig,
    DriverConfig,
    HostConfig,
    KmsgConfig,
    LinkConfig,
    NvidiaConfig,
    PreviousBootConfig,
    VendorConfig,
)
from nodeagent.core.model import KERNEL_LOG, PREVIOUS_BOOT, Kind

HELLO_DEADLINE_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetTraits:
    """How the devices of a vendor are reset, and what is asked of its tools around that."""

    module: str
    """Imported only in the process of a reset: see ``drivers.shared.resetting``."""

    needs_closed: bool
    """Nobody may have the devices open meanwhile, so the worker ends; else it lets them alone."""

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
    """The code of the line of the kernel log which says that it has lost events."""

    reset: ResetTraits | None = None


_ASCEND = DriverTraits(
    module="nodeagent.drivers.ascend.npu.driver",
    section=ChipsConfig,
    lists=Kind.CHIP,
    library="libdcmi.so",
    # See drivers.ascend.library.namespace.
    has_unit=True,
    # While chips start, the first call into the driver sleeps for up to 150 s in the kernel
    # (sdk_driver/pbl/uda/uda_access.c, uda_wait_all_phy_startup); then dcmi_init waits about two seconds for
    # the MCU of each card that is silent.
    hello_deadline_s=180.0,
    reset=ResetTraits(
        module="nodeagent.drivers.ascend.npu.reset",
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
    module="nodeagent.drivers.ascend.unifiedbus.driver",
    section=VendorConfig,
    lists=Kind.UNIFIEDBUS,
    library="liblingqu-dcmi.so",
    has_unit=True,
    # Only another process asks its library for all that stands: see drivers.ascend.unifiedbus.driver.
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
