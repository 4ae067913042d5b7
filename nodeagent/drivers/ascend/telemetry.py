"""What a chip measures: a table of gauges, each with its call, its unit and its valid range.

A call that the chip does not support is made once. A call that fails is left out, so that an unknown value is
never read as zero; if it keeps failing, it is made seldom. An impossible value is refused and counted. Values
that change slowly are read seldom, and the last value is reported in between. No value is judged here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.ascend.abi import (
    EccInfo,
    HbmInfo,
    HccsStatistics,
    HccsStatus,
    PacketStatistics,
    PcieErrorRate,
    PcieLinkErrors,
    UbPortLinkStatus,
)
from nodeagent.drivers.ascend.dcmi_calls import DcmiChip, ImpossibleValue, NotSupported
from nodeagent.drivers.ascend.slow_calls import Refusals

Measured = tuple[str, float, float, float]
"""A metric, its value, and the least and the most that the vendor's documents allow, in the metric's unit."""

Read = Callable[[DcmiChip], Iterable[Measured]]

_MIB: Final = 1 << 20
_MHZ: Final = 1_000_000
_ABSOLUTE_ZERO: Final = -275
"""MindCluster's bound for a temperature; for the upper ones the vendor gives none, so they are generous."""

_HOTTEST: Final = 250
_COUNTER: Final = 0xFFFFFFFF - 1
"""All ones are what the driver leaves in a counter that it could not read."""

_LARGEST: Final = 2**63
_HCCS, _PCIE = 16, 55
"""``dcmi_main_cmd``."""

_PROFILED: Final = 0xEF
"""The utilization of a core that is profiled (``dms_calculate_average_utilization`` of the driver's
dms_ts_info.c).
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gauge:
    """``seldom``: asked only in the slow round. Known by itself: it is looked up often."""

    read: Read
    seldom: bool = False


class ChipTelemetry:
    """The readings of one chip. Used by one thread at a time. ``refused`` counts values that cannot be."""

    def __init__(self, chip: DcmiChip, gauges: Sequence[Gauge] | None = None) -> None:
        self._chip = chip
        self._all_gauges = GAUGES if gauges is None else gauges
        self._gauges = list(self._all_gauges)
        self._seldom: dict[Gauge, dict[str, float]] = {}
        self._refusals = Refusals()
        self.refused = 0

    def read(self, *, slow_round: bool) -> dict[str, float]:
        """All readings."""
        readings: dict[str, float] = {}
        for gauge in tuple(self._gauges):
            if not self._refusals.asks(gauge, slow_round=slow_round):
                continue
            if not gauge.seldom:
                readings.update(self._ask(gauge))
                continue
            if slow_round or gauge not in self._seldom:
                self._seldom[gauge] = self._ask(gauge)
            readings.update(self._seldom[gauge])
        return readings

    def forget(self) -> None:
        """The chip was away: what it answered last, and what it refused, are of another time."""
        self._seldom.clear()
        self._refusals.forget()
        self._gauges = list(self._all_gauges)

    def _ask(self, gauge: Gauge) -> dict[str, float]:
        try:
            readings = self._believed(gauge.read(self._chip))
        except NotSupported:
            self._gauges.remove(gauge)
        except ImpossibleValue:
            self.refused += 1
        except CallFailed:
            # Unknown for this once: the reading is left out.
            self._refusals.note(gauge, refused=True)
        else:
            self._refusals.note(gauge, refused=False)
            return readings
        return {}

    def _believed(self, measured: Iterable[Measured]) -> dict[str, float]:
        readings = {}
        for metric, value, lowest, highest in measured:
            if lowest <= value <= highest:
                readings[metric] = float(value)
            else:
                self.refused += 1
        return readings


def _signed(metric: str, call: str, lowest: float, highest: float, per: int = 1) -> Gauge:
    """``per``: how many of the library's units make one of the metric's."""
    return Gauge(read=lambda chip: ((metric, chip.signed(call) / per, lowest, highest),))


def _unsigned(metric: str, call: str, highest: float, *selectors: int, per: int = 1, times: int = 1) -> Gauge:
    return Gauge(read=lambda chip: ((metric, chip.unsigned(call, *selectors) * times / per, 0, highest),))


def _core_utilization(part: str, kind: int, cores: int) -> Gauge:
    """While a program profiles the cores, their use is unknown: the driver marks each core so, which the
    library makes a use of 0 (``dcmi_get_npu_device_utilization_rate`` of dcmi_inner_info_get.c).
    """

    def read(chip: DcmiChip) -> Iterator[Measured]:
        percent = chip.unsigned("utilization", kind)
        is_profiled = percent == 0 and _PROFILED in chip.core_use(cores)
        yield f"profiled.{part}", is_profiled, 0, 1
        if not is_profiled:
            yield f"utilization_ratio.{part}", percent / 100, 0, 1

    return Gauge(read=read)


def _utilization(part: str, kind: int) -> Gauge:
    return _unsigned(f"utilization_ratio.{part}", "utilization", 1, kind, per=100)


def _hbm(chip: DcmiChip) -> Iterator[Measured]:
    info = chip.structure("hbm", HbmInfo)
    total_bytes = info.memory_size * _MIB
    yield "memory_total_bytes", total_bytes, 0, _LARGEST
    yield "memory_used_bytes", info.memory_usage * _MIB, 0, total_bytes
    yield "temperature_celsius.memory", info.temp, _ABSOLUTE_ZERO, _HOTTEST
    yield "frequency_hertz.memory", info.freq * _MHZ, 0, 1e11
    yield "utilization_ratio.memory_bandwidth", info.bandwith_util_rate / 100, 0, 1


def _ecc(location: str, kind: int) -> Gauge:
    """``kind`` is of ``dcmi_device_type``. Pages are isolated in the HBM only."""

    def read(chip: DcmiChip) -> Iterator[Measured]:
        info = chip.structure("ecc", EccInfo, kind)
        yield f"ecc_corrected_total.{location}", info.total_single_bit_error_cnt, 0, _COUNTER
        yield f"ecc_uncorrected_total.{location}", info.total_double_bit_error_cnt, 0, _COUNTER
        if location == "hbm":
            yield "ecc_isolated_pages.single", info.single_bit_isolated_pages_cnt, 0, _COUNTER
            yield "ecc_isolated_pages.double", info.double_bit_isolated_pages_cnt, 0, _COUNTER

    return Gauge(read=read)


def _packets(chip: DcmiChip) -> Iterator[Measured]:
    """The packets of the chip's own network port."""
    packets = chip.structure("packets", PacketStatistics, 0)
    yield "link_received_bytes_total.roce", packets.mac_rx_total_oct_num, 0, _LARGEST
    yield "link_sent_bytes_total.roce", packets.mac_tx_total_oct_num, 0, _LARGEST
    yield "link_received_packets_total.roce", packets.roce_rx_all_pkt_num, 0, _LARGEST
    yield "link_sent_packets_total.roce", packets.roce_tx_all_pkt_num, 0, _LARGEST
    yield "link_errors_total.roce_fcs", packets.mac_rx_fcs_err_pkt_num, 0, _LARGEST
    yield "link_retries_total.roce", packets.roce_new_pkt_rty_num, 0, _LARGEST


def _hccs_state(chip: DcmiChip) -> Iterator[Measured]:
    """As npu-smi judges it: no port in error, and every link trained."""
    status = chip.info(HccsStatus, _HCCS, 0)
    yield "link_up.hccs", status.pcs_status == 0 and status.hdlc_status == 3, 0, 1


def _hccs_statistics(chip: DcmiChip) -> Iterator[Measured]:
    statistics = chip.info(HccsStatistics, _HCCS, 5)
    yield "link_errors_total.hccs_crc", sum(statistics.crc_err_cnt), 0, _LARGEST
    yield "link_retries_total.hccs", sum(statistics.retry_cnt), 0, _LARGEST


def _ub_ports(chip: DcmiChip) -> Iterator[Measured]:
    """A port that is not there (0) has no state; 1 and 2 are up with all or some lanes, 3 is down."""
    status = chip.structure("ub_ports", UbPortLinkStatus)
    for port, state in enumerate(status.ub_port_status):
        if state != 0:
            yield f"link_up.ub{port}", {1: 1, 2: 1, 3: 0}.get(state, -1), 0, 1


def _pcie_errors(chip: DcmiChip) -> Iterator[Measured]:
    errors = chip.structure("pcie_errors", PcieErrorRate)
    yield "pcie_errors_total.symbol_unlock", errors.symbol_unlock_counter, 0, _COUNTER
    yield "pcie_errors_total.pcs_receive", errors.pcs_rx_err_cnt, 0, _COUNTER
    yield "pcie_errors_total.phy_lane", errors.phy_lane_err_counter, 0, _COUNTER
    yield "pcie_errors_total.lcrc", errors.dl_lcrc_err_num, 0, _COUNTER
    yield "pcie_errors_total.dcrc", errors.dl_dcrc_err_num, 0, _COUNTER


def _pcie_link_errors(chip: DcmiChip) -> Iterator[Measured]:
    errors = chip.info(PcieLinkErrors, _PCIE, 1)
    yield "pcie_errors_total.sent", errors.tx_err_cnt, 0, _COUNTER
    yield "pcie_errors_total.received", errors.rx_err_cnt, 0, _COUNTER
    yield "pcie_errors_total.link_lcrc", errors.lcrc_err_cnt, 0, _COUNTER
    yield "pcie_errors_total.ecrc", errors.ecrc_err_cnt, 0, _COUNTER
    yield "pcie_replay_total", errors.retry_cnt, 0, _COUNTER


def _boot_status(chip: DcmiChip) -> Iterator[Measured]:
    yield "boot_status", chip.signed("boot_status"), 0, 16


GAUGES: Final[Sequence[Gauge]] = (
    _signed("temperature_celsius", "temperature", _ABSOLUTE_ZERO, _HOTTEST),
    _signed("power_watts", "power", 0, 10_000, per=10),
    _unsigned("voltage_volts", "voltage", 100, per=100),
    _unsigned("frequency_hertz.aicore", "frequency", 1e11, 7, times=_MHZ),
    _utilization("ddr", 1),
    _core_utilization("aicore", 2, cores=0),
    _utilization("aicpu", 3),
    _utilization("ddr_bandwidth", 5),
    _utilization("memory", 6),
    _core_utilization("vector", 12, cores=1),
    _utilization("npu", 13),
    Gauge(read=_hbm),
    _ecc("ddr", 0),
    _ecc("sram", 1),
    _ecc("hbm", 2),
    _ecc("npu", 3),
    Gauge(read=_hccs_state),
    Gauge(read=_ub_ports),
    Gauge(read=_packets, seldom=True),
    Gauge(read=_hccs_statistics, seldom=True),
    Gauge(read=_pcie_errors, seldom=True),
    Gauge(read=_pcie_link_errors, seldom=True),
    Gauge(read=_boot_status, seldom=True),
)
"""The gauges in the order in which they are asked for."""

MAY_WAIT: Final[Sequence[Gauge]] = (_signed("network_health", "network_health", 0, 8),)
"""The vendor's own tools ask for it with a time limit: it may wait for the network itself."""
