"""A job's chips: which devices its processes use, and what is read of them. It decides and keeps nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nodeagent.api.jobs.peers import PROCFS
from nodeagent.core.model import DeviceView, Holder, JobView, Peer, View
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
_PERCENT: Final = 100.0


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

    def used(self, view: View) -> dict[str, list[str]]:
        """The ids of the devices that each supervised job uses, by its name."""
        found: dict[str, list[str]] = {}
        seen = dict[tuple[int, int], str]()
        for device in view.devices:
            for holder in device.holders or ():
                name = self._whose(holder)
                seen[holder.pid, holder.start_time] = name
                if name and device.id not in found.setdefault(name, []):
                    found[name].append(device.id)
        self._known = seen
        return found

    def owners(self, view: View) -> dict[str, str]:
        """The supervised job that each process on a device is of, by ``Holder.key``; not those of none."""
        holders = (holder for device in view.devices for holder in device.holders or ())
        return {holder.key: name for holder in holders if (name := self._whose(holder))}

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


def chip(device: DeviceView, readings: Readings, pids_there: Mapping[Holder, int | None]) -> ChipReading:
    """``pids_there`` are the pids that processes of the host have for the supervisor, None for none."""
    pids = None if device.holders is None else [pids_there[holder] for holder in device.holders]
    use = readings.get(_USE.get(device.vendor, ""))
    memory_use = readings.get(_MEMORY_USE)
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
    )


def _sum(readings: Readings, name: str) -> int | None:
    """The sum over all links of a chip."""
    values = [value for _, value in _parts(readings, name)]
    return int(sum(values)) if values else None


def _parts(readings: Readings, name: str) -> list[tuple[str, float]]:
    return [(each, value) for each, value in readings.items() if each.partition(".")[0] == name]
