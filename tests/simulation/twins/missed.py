"""A twin of what the node is missing, from the inputs alone: sources that are lost, or not looked for yet."""

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import (
    ALL_DEVICES,
    ActiveSet,
    Input,
    Loss,
    SourceAbsent,
    SourceBack,
    SourceLost,
    Started,
)

STALE_AFTER_NS = 30 * SECOND_NS


class Missed:
    """``step`` is fed every input, in order; ``sources`` are those that are missed then."""

    def __init__(self) -> None:
        self._boot = ""
        self._started_ns = 0
        self._needed: dict[str, bool] = {}
        self._never_read: set[str] = set()
        self._unread: set[str] = set()
        self._absent: set[str] = set()
        self._lost: dict[str, bool] = {}
        self._known: set[str] = set()

    def step(self, given: Input, now_ns: int) -> None:
        match given:
            case Started():
                self._start(given, now_ns)
            case SourceLost(device="", source=name):
                self._settled(name)
                needed = given.how is Loss.NOT_READ and self._needed.get(name, False)
                self._lost[name] = given.required or given.how is Loss.NOT_RUNNING or needed
            case SourceBack(device="", source=name):
                self._settled(name)
            case ActiveSet(source=name) if given.complete and given.device == ALL_DEVICES:
                self._settled(name)
            case SourceAbsent(source=name):
                self._settled(name)
                self._absent.add(name)

    def sources(self, now_ns: int) -> set[str]:
        missed = {name for name, matters in self._lost.items() if matters}
        waited_for = self._unread - self._lost.keys() - self._absent
        missed |= waited_for & self._never_read
        if now_ns > self._started_ns + STALE_AFTER_NS:
            missed |= {name for name in waited_for if self._needed.get(name, False)}
        return missed

    def _start(self, given: Started, now_ns: int) -> None:
        rebooted = bool(self._boot) and given.boot_id != self._boot
        self._boot, self._started_ns = given.boot_id, now_ns
        self._needed = {each.name: each.needed for each in given.sources}
        lists = {each.name for each in given.sources if each.lists}
        if rebooted:
            self._absent.clear()
        self._never_read |= lists if rebooted else lists - self._known
        self._unread = self._known | self._needed.keys()
        self._known |= self._needed.keys()

    def _settled(self, name: str) -> None:
        self._known.add(name)
        self._never_read.discard(name)
        self._unread.discard(name)
        self._absent.discard(name)
        self._lost.pop(name, None)
