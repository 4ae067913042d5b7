"""The machine under the daemon: its clocks, parts, what is broken on them, and what its sources would say.

It knows nothing of the engine. Whatever happens is a *activity*: a generator that changes the world, says
inputs, and yields how long it waits. What is said while nobody listens is lost, as callbacks are.
"""

import heapq
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import (
    ALL_DEVICES,
    ActiveCode,
    ActiveSet,
    Assertion,
    DeviceSeen,
    Holder,
    Input,
    Kind,
    Loss,
    ProcessesListed,
    Signal,
    SourceAbsent,
    SourceBack,
    SourceLost,
    Wanted,
)

EPOCH_NS = 1_790_000_000 * SECOND_NS
"""What a right wall clock says as the simulation begins."""

Activity = Iterator[int]
Wish = tuple[Wanted, int, int]
"""What is wanted of a job, for which run, and how much of what its supervisor said is taken."""


@dataclass(slots=True)
class Part:
    """A chip, switch chip or port in a slot. ``active`` are the codes its driver shows as present now.

    Those of one ``group`` are reset together; ``when_reset`` is well, stays, returns or silent.
    ``holders`` None: only activities report them here.
    """

    name: str
    identity: str
    pci: str
    source: str
    kind: Kind
    upstream: str = ""
    group: str = ""
    present: bool = True
    readable: bool = True
    heard: bool = True
    active: dict[str, None] = field(default_factory=dict)
    when_reset: str = "well"
    holders: tuple[Holder, ...] | None = None
    reported_holders: tuple[Holder, ...] | None = None


@dataclass(frozen=True, slots=True)
class Crash:
    """The daemon dies at this point of the shell's next work, and is started again later."""

    where: str
    down_ns: int


@dataclass(frozen=True, slots=True)
class Reboot:
    off_ns: int
    wall_error_ns: int


@dataclass(frozen=True, slots=True)
class Said:
    inputs: tuple[Input, ...]


@dataclass(frozen=True, slots=True)
class Reload:
    digest: str


@dataclass(frozen=True, slots=True)
class Compact:
    pass


@dataclass(frozen=True, slots=True)
class Does:
    """Something is done to the daemon's process or to what lies about it."""

    work: Callable[[], None]


Act = Said | Crash | Reboot | Reload | Compact | Does


class World:
    """``true_ns`` is the time that really passes; every clock that the daemon can read follows from it.

    ``digests`` are of the tables that may be in force, ``calm`` of those that mostly are. ``proposed`` are
    the resets in progress, as the daemon shows them, ``wanted`` what it wants of jobs, ``lives`` how often it
    has begun. ``supervised`` are the jobs of which there are twins, ``overlaps`` what these have found.
    ``degrade`` takes the disk away, for a reason, or gives it back ("").
    """

    def __init__(self, seed: int, parts: Sequence[Part], digests: Sequence[str]) -> None:
        self.rng = random.Random(seed)
        self.true_ns = 1000 * SECOND_NS
        self.boot = 1
        self.booted_ns = 0
        self.wall_error_ns = 0
        self.digests = tuple(digests)
        self.calm = self.digest = self.digests[0]
        self.parts = list(parts)
        self.listening = False
        self.proposed: tuple[str, ...] = ()
        self.lives = 0
        self.wanted: Mapping[str, Wish] = {}
        self.supervised: set[str] = set()
        self.overlaps: list[str] = []
        self.degrade: Callable[[str], None] = lambda _: None
        self.lost: set[str] = set()
        self.rule_of_boottime: Callable[[int], int] = lambda boottime_ns: boottime_ns
        self._acts: list[Act] = []
        self._activities: list[tuple[int, int, Activity]] = []
        self._started = 0

    # ------------------------------------------------------------------ clocks

    @property
    def boot_id(self) -> str:
        return f"boot-{self.boot}"

    def boottime_ns(self) -> int:
        return self.true_ns - self.booted_ns

    def wall_ns(self) -> int:
        return EPOCH_NS + self.true_ns + self.wall_error_ns

    def rule_ns(self, true_ns: int) -> int:
        """A moment of this boot on the daemon's rule clock, as a worker's stamp would be translated."""
        return self.rule_of_boottime(true_ns - self.booted_ns)

    def reboots(self, reboot: Reboot) -> None:
        """Off and on again: a new boot id, BOOTTIME from nothing, perhaps a wall clock that is wrong."""
        self.true_ns += reboot.off_ns
        self.boot += 1
        self.booted_ns = self.true_ns - 20 * SECOND_NS
        self.wall_error_ns = reboot.wall_error_ns
        self.lost.clear()
        for part in self.parts:
            part.heard = True
            part.holders = part.holders and ()
            part.active = {code: None for code in part.active if self.rng.random() < 0.3}

    # ------------------------------------------------------------------ activities

    def begin(self, activity: Activity, after_ns: int = 0) -> None:
        self._started += 1
        heapq.heappush(self._activities, (self.true_ns + after_ns, self._started, activity))

    def next_ns(self) -> int | None:
        return self._activities[0][0] if self._activities else None

    def go_on(self) -> list[Act]:
        """Let the next activity take its next step; what it brings about."""
        at_ns, number, activity = heapq.heappop(self._activities)
        self.true_ns = max(self.true_ns, at_ns)
        wait_ns = next(activity, None)
        if wait_ns is not None:
            heapq.heappush(self._activities, (self.true_ns + max(0, wait_ns), number, activity))
        acts, self._acts = self._acts, []
        return acts

    def act(self, act: Act) -> None:
        self._acts.append(act)

    def say(self, *inputs: Input) -> None:
        self._acts.append(Said(inputs))

    # ------------------------------------------------------------------ what sources say

    def of_source(self, source: str) -> list[Part]:
        return [part for part in self.parts if part.source == source]

    def chips(self) -> list[Part]:
        return [part for part in self.parts if part.kind is Kind.CHIP]

    def hears(self, part: Part) -> bool:
        return part.present and part.heard and part.source not in self.lost

    def occur(self, part: Part, code: str, reported: bool = True, severity: int | None = None) -> None:
        """The fault begins, or comes again; ``reported`` false: its callback is lost."""
        part.active[code] = None
        if reported and self.hears(part):
            self.say(self.signal(part, code, Assertion.OCCUR, severity))

    def recover(self, part: Part, code: str, reported: bool = True) -> None:
        part.active.pop(code, None)
        if reported and self.hears(part):
            self.say(self.signal(part, code, Assertion.RECOVER))

    def once(self, part: Part, code: str, source: str = "", count: int = 1) -> None:
        if source or self.hears(part):
            self.say(self.signal(part, code, Assertion.ONCE, source=source, count=count))

    def signal(
        self,
        part: Part,
        code: str,
        assertion: Assertion,
        severity: int | None = None,
        source: str = "",
        count: int = 1,
    ) -> Signal:
        return Signal(
            source=source or part.source,
            device=part.pci if source == "kmsg" else part.name,
            code=code,
            assertion=assertion,
            severity=severity,
            count=count,
        )

    def seen(self, part: Part) -> DeviceSeen:
        attributes = {"pci": part.pci} if part.pci else {}
        if part.upstream:
            attributes["upstream"] = part.upstream
        if part.group:
            attributes["group"] = part.group
        return DeviceSeen(
            source=part.source,
            device=part.name,
            kind=part.kind,
            vendor=part.source,
            identity=part.identity if part.readable else "",
            attributes=attributes,
        )

    def poll(self, part: Part, takes_ns: int = 0, complete: bool = True) -> Activity:
        """Ask for the active set; what comes meanwhile overtakes the answer."""
        begun_ns = self.true_ns
        codes = tuple(ActiveCode(code=code) for code in part.active)
        boot = self.boot
        yield takes_ns
        if self.hears(part) and boot == self.boot:
            self.say(
                ActiveSet(
                    source=part.source,
                    device=part.name,
                    codes=codes if complete else codes[:1],
                    begun_ns=self.rule_ns(begun_ns),
                    complete=complete,
                )
            )

    def report_holders(self, part: Part) -> None:
        """Once to each worker, then as they change."""
        if part.holders != part.reported_holders and self.hears(part):
            part.reported_holders = part.holders
            self.say(ProcessesListed(device=part.name, holders=part.holders or ()))

    def lose(self, source: str, reason: str, how: Loss = Loss.NOT_READ) -> None:
        self.lost.add(source)
        self.say(SourceLost(source=source, reason=reason, required=source == "ascend", how=how))

    def hello(self, source: str, after_ns: int) -> Activity:
        """A worker of the source comes up: its devices, their active sets, then that all is read."""
        boot = self.boot
        yield after_ns
        if boot != self.boot:
            return
        self.lost.discard(source)
        for part in self.of_source(source):
            part.heard = True
            if part.present:
                self.say(self.seen(part))
                yield from self.poll(part)
                part.reported_holders = None
                self.report_holders(part)
        if source == "kmsg":
            shown = self.rule_ns(self.true_ns)
            self.say(ActiveSet(source=source, device=ALL_DEVICES, codes=(), begun_ns=shown, complete=True))
            self.say(SourceAbsent(source="link", reason="there is no port"))
        self.say(SourceBack(source=source, required=source == "ascend"))


def mixed_parts() -> list[Part]:
    """NPUs and GPUs, and a switch chip with its ports."""
    chips = [
        Part(f"npu{n}", f"die{n}", f"0000:0{n}:00.0", "ascend", Kind.CHIP, upstream="0000:20:00.0")
        for n in range(4)
    ]
    gpus = [
        Part(
            f"gpu{n}",
            f"GPU-{n}",
            f"0000:3{n}:00.0",
            "nvidia",
            Kind.CHIP,
            upstream="0000:20:00.0,0000:21:00.0",
        )
        for n in range(2)
    ]
    ports = [Part("ub0", "ub-die0", "", "unifiedbus", Kind.UNIFIEDBUS)]
    ports += [Part(f"ub0/{n}", f"ub-die0/{n}", "", "unifiedbus", Kind.UNIFIEDBUS) for n in range(2)]
    return chips + gpus + ports
