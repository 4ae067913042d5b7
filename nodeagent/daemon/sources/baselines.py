"""What is kept of a source's devices for later workers. Pure.

What a worker reports goes to the core, which keeps it, once its device is listed; until then the worker
repeats it. It is not read here: see ``core.machines.devices``.
"""

from collections.abc import Collection, Mapping, MutableMapping

from nodeagent.core.model import BaselineSeen, View
from nodeagent.wire import MAX_BASELINE, MAX_DEVICES, Baseline, Device, Reply


def baselines_of(view: View, source: str) -> Mapping[str, Baseline]:
    """Those that earlier lives have kept, by the identity of the part."""
    kept = [each for each in view.baselines if each.source == source and len(each.content) <= MAX_BASELINE]
    return {
        each.device_id: Baseline(number=each.number, content=each.content) for each in kept[-MAX_DEVICES:]
    }


def open_codes_of(view: View, source: str) -> Mapping[str, tuple[str, ...]]:
    """The faults of the source that are open, by the id of the device."""
    found: dict[str, list[str]] = {}
    for condition in view.conditions:
        if (
            condition.source == source
            and condition.presence.present_ns is not None
            and not condition.origin.injected
        ):
            found.setdefault(condition.device_id, []).append(condition.code)
    return {device_id: tuple(codes) for device_id, codes in [*found.items()][-MAX_DEVICES:]}


class KeptBaselines:
    """``kept`` are those that the next worker is given, by identity: what is taken is put there."""

    def __init__(self, source: str, kept: MutableMapping[str, Baseline]) -> None:
        self._source = source
        self._kept = kept

    def take(self, reply: Reply, listed: Collection[Device]) -> list[BaselineSeen]:
        """What is news of it. Of a baseline that a person has ended since, nothing is."""
        said, identity = reply.baseline, reply.identity
        if said is None or not identity or not said.content:
            return []
        before = self._kept.get(identity)
        if said == before or (before is not None and before.number != said.number):
            return []
        if identity not in {device.identity for device in listed}:
            return []
        self._kept[identity] = said
        return [
            BaselineSeen(source=self._source, identity=identity, number=said.number, content=said.content)
        ]

    def restart(self, identity: str, number: int) -> bool:
        """An operator has ended it. Whether that is news."""
        before = self._kept.get(identity)
        if before is not None and before.number >= number:
            return False
        self._kept[identity] = Baseline(number=number)
        return True
