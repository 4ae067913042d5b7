"""A twin of what the core knows of its sources, from the inputs alone: which of them observe what."""

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import ALL_DEVICES, ActiveSet, EventKind, SourceBack, SourceLost, Started, View
from tests.simulation.history import Step

START_DEADLINE_NS = STALE_AFTER_NS = 30 * SECOND_NS
ALWAYS_HEARD = ("agent", "public", "")


def device_id(view: View, name: str) -> str:
    """The id of the device that goes by that name, id or PCI address; "" if none does."""
    for one in view.devices:
        if one.name == name:
            return one.id
    by_pci = (one.id for one in view.devices if one.attributes.get("pci") == name)
    by_id = (one.id for one in view.devices if one.id == name)
    return next(by_pci, None) or next(by_id, "")


class Observed:
    """``step`` is fed every step, in order; the answers are as of then."""

    def __init__(self) -> None:
        self._lost: set[tuple[str, str]] = set()
        self._lost_before_start: set[tuple[str, str]] = set()
        self._read: dict[tuple[str, str], bool] = {}
        self._started_ns = 0
        self._boot = ""
        self.rebooted = False

    def step(self, step: Step) -> None:
        given = step.given
        match given:
            case Started():
                self._start(step.now_ns, given.boot_id)
            case SourceLost():
                self._lose(
                    given.source, device_id(step.before, given.device) if given.device else "", given.device
                )
            case SourceBack():
                self._reads(step, given.source, given.device or ALL_DEVICES)
            case ActiveSet() if given.complete:
                self._reads(step, given.source, given.device)
        for event in step.events:
            if event.kind is EventKind.DEVICE_REPLACED:
                was = event.evidence["was"]
                self._lost = {one for one in self._lost if one[1] != was}
                self._read = {one: read for one, read in self._read.items() if one[1] != was}

    def awaits(self, source: str, device: str, now_ns: int) -> bool:
        """Nothing of it is judged by time now: lost, or not read since a start that is not long ago."""
        if source in ALWAYS_HEARD or self._reads_now(source, device):
            return False
        if self.is_lost(source, device) and not self._only_before_start(source, device):
            return True
        return self._knows(source) and now_ns <= self._started_ns + START_DEADLINE_NS

    def observes(self, source: str, device: str) -> bool:
        return source in ALWAYS_HEARD or self._reads_now(source, device) or not self._knows(source)

    def is_lost(self, source: str, device: str) -> bool:
        return (source, device) in self._lost or (
            (source, "") in self._lost and not self._read.get((source, device), False)
        )

    def started_within(self, now_ns: int, span_ns: int) -> bool:
        return now_ns <= self._started_ns + span_ns

    def _reads_now(self, source: str, device: str) -> bool:
        return self._read.get((source, device), self._read.get((source, ""), False))

    def _only_before_start(self, source: str, device: str) -> bool:
        """A new process waits for it as for any other: until the start deadline."""
        lost = self._lost & {(source, device), (source, "")}
        return lost <= self._lost_before_start

    def _knows(self, source: str) -> bool:
        return any(one[0] == source for one in self._read)

    def _start(self, now_ns: int, boot: str) -> None:
        self.rebooted = bool(self._boot) and boot != self._boot
        self._boot, self._started_ns = boot, now_ns
        self._lost_before_start = set(self._lost)
        self._read = {(source, ""): False for source, _ in self._read}
        for source, device in self._lost:
            self._read[source, device] = False

    def _lose(self, source: str, device: str, named: str) -> None:
        if named and not device:
            return
        if not device:
            self._lost = {one for one in self._lost if one[0] != source}
            self._read = {one: read for one, read in self._read.items() if one[0] != source}
        self._lost.add((source, device))
        self._lost_before_start.discard((source, device))
        self._read[source, device] = False

    def _reads(self, step: Step, source: str, named: str) -> None:
        if named == ALL_DEVICES:
            self._lost = {one for one in self._lost if one[0] != source}
            self._read = {one: read for one, read in self._read.items() if one[0] != source}
            self._read[source, ""] = True
            return
        device = device_id(step.before, named) or device_id(step.after, named)
        if device and self._knows(source):
            self._lost.discard((source, device))
            self._read[source, device] = True
