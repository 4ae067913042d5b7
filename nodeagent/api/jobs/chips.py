"""A job's chips: which devices its processes use, and what is read of them. It decides and keeps nothing."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from nodeagent.api.jobs.peers import PROCFS
from nodeagent.core.model import DeviceView, Holder, JobView, Peer, View
from nodeagent.core.state.registry import is_behind
from nodeagent.job.lines import ChipReading
from nodeagent.system.processes import ancestry

Readings = Mapping[str, float]

_USE: Final[Mapping[str, str]] = {
    "ascend": "utilization_ratio.aicore",
    "nvidia": "utilization_ratio.gpu",
}
"""By vendor, the reading that moves while a program computes. Ascend's other cores also work while nothing
trains.
"""

_MEMORY_USE: Final = "utilization_ratio.memory_bandwidth"
_POWER: Final = "power_watts"
_RECEIVED: Final = "link_received_bytes_total"
_SENT: Final = "link_sent_bytes_total"
_PROFILED: Final = "profiled"
_CLOCK: Final[Mapping[str, str]] = {"ascend": "frequency_hertz.aicore", "nvidia": "frequency_hertz.sm"}
"""By vendor, the clock of what computes."""

_TEMPERATURE: Final = "temperature_celsius"
_POWER_LIMIT: Final = "power_limit_watts"
_THROTTLE: Final = "throttle"
_IDLE: Final = "idle"
"""Of what holds a clock down, the one that is none: the GPU does nothing."""

_LINK_ERRORS: Final = (
    "nvlink_errors_total",
    "nvlink_link_errors_total",
    "nvlink_packet_errors_total",
    "link_errors_total",
    "pcie_errors_total",
    "pcie_replay_total",
)
_MEGA: Final = 1e6
_MEMORY_USED: Final = "memory_used_bytes"
_MEMORY_TOTAL: Final = "memory_total_bytes"
_LINK_UP: Final = "link_up"
_NETWORK: Final = "network"
"""The chip's own port to the network."""

_DOWN: Final = frozenset({"PORT_DOWN", "PORT_MISSING"})
"""Codes of a port that jobs need and that is down (fault_codes/link.toml)."""

_PERCENT: Final = 100.0


class JobUse(NamedTuple):
    """The ids of the devices that a job uses, and its processes on them by ``Holder.key``, each in order."""

    devices: dict[str, None]
    processes: dict[str, None]


NO_USE: Final = JobUse({}, {})


class Ownership:
    """Whose the processes on the devices are, among the supervisors that are connected.

    A process belongs to the nearest supervisor above it whose cgroup names the same job, or none as its own
    does; else to the supervisor of the job that its cgroup names.
    """

    def __init__(self, procfs: Path = PROCFS) -> None:
        self._procfs = procfs
        self._supervisors: dict[str, tuple[Peer, str]] = {}
        self._known: dict[tuple[int, int], str] = {}

    def join(self, name: str, peer: Peer, of_cgroup: str) -> None:
        self._supervisors[name] = (peer, of_cgroup)
        self._known.clear()

    def leave(self, name: str) -> None:
        self._supervisors.pop(name, None)
        self._known.clear()

    def used(self, view: View) -> dict[str, JobUse]:
        """What each supervised job uses, by its name."""
        found: dict[str, JobUse] = {}
        seen = dict[tuple[int, int], str]()
        for device in view.devices:
            for holder in device.holders or ():
                name = self._whose(holder)
                seen[holder.pid, holder.start_time] = name
                if name:
                    use = found.setdefault(name, JobUse({}, {}))
                    use.devices[device.id] = use.processes[holder.key] = None
        self._known = seen
        return found

    def _whose(self, holder: Holder) -> str:
        known = self._known.get((holder.pid, holder.start_time))
        return self._looked_up(holder) if known is None else known

    def _looked_up(self, holder: Holder) -> str:
        by_process = {
            (peer.pid, peer.start_time): name
            for name, (peer, of_cgroup) in self._supervisors.items()
            if of_cgroup == holder.job
        }
        if by_process:
            for process in ancestry(holder.pid, self._procfs):
                if process in by_process:
                    return by_process[process]
        return holder.job if holder.job in self._supervisors else ""


def devices_of(view: View, job: JobView) -> list[DeviceView]:
    wanted = frozenset(job.devices)
    return [device for device in view.devices if device.id in wanted]


def ports_down(view: View, chips: Iterable[DeviceView]) -> dict[str, tuple[str, ...]]:
    """The names of the needed ports that are down, by the name of each chip that is behind one."""
    down = {each.device_id for each in view.conditions if each.code in _DOWN}
    ports = [each for each in view.devices if each.id in down]
    return {chip.name: tuple(port.name for port in ports if is_behind(chip, port)) for chip in chips}


def chip(
    device: DeviceView,
    readings: Readings,
    pids_there: Mapping[Holder, int | None],
    down: tuple[str, ...] = (),
) -> ChipReading:
    """``pids_there`` are the pids that processes of the host have for the supervisor, None for none. ``down``
    are the ports of the node that the chip is behind and that are down.
    """
    pids = None if device.holders is None else [pids_there[holder] for holder in device.holders]
    use = readings.get(_USE.get(device.vendor, ""))
    memory_use = readings.get(_MEMORY_USE)
    clock = readings.get(_CLOCK.get(device.vendor, ""))
    return ChipReading(
        name=device.name,
        known=device.observed,
        util=None if use is None else use * _PERCENT,
        mem_util=None if memory_use is None else memory_use * _PERCENT,
        power_w=readings.get(_POWER),
        rx_bytes=_sum(readings, _RECEIVED),
        tx_bytes=_sum(readings, _SENT),
        profiling=any(value for _, value in _parts(readings, _PROFILED)),
        handling=device.handling.value,
        holders=None if pids is None else tuple(pid for pid in pids if pid is not None),
        model=device.attributes.get("product") or device.attributes.get("model", ""),
        clock_mhz=None if clock is None else clock / _MEGA,
        temperature_c=readings.get(_TEMPERATURE),
        power_limit_w=readings.get(_POWER_LIMIT),
        throttled=_throttled(readings),
        link_errors=_sum(readings, *_LINK_ERRORS),
        memory_used_bytes=_whole(readings, _MEMORY_USED),
        memory_total_bytes=_whole(readings, _MEMORY_TOTAL),
        ports={
            **{name.partition(".")[2]: bool(value) for name, value in _parts(readings, _LINK_UP)},
            _NETWORK: not device.network_unhealthy,
        },
        ports_down=down,
    )


def _throttled(readings: Readings) -> tuple[str, ...]:
    reasons = (name.partition(".")[2] for name, value in _parts(readings, _THROTTLE) if value)
    return tuple(sorted(reason for reason in reasons if reason != _IDLE))


def _whole(readings: Readings, name: str) -> int | None:
    value = readings.get(name)
    return None if value is None else int(value)


def _sum(readings: Readings, *names: str) -> int | None:
    """The sum over all links of a chip."""
    values = [value for _, value in _parts(readings, *names)]
    return int(sum(values)) if values else None


def _parts(readings: Readings, *names: str) -> list[tuple[str, float]]:
    return [(each, value) for each, value in readings.items() if each.partition(".")[0] in names]
