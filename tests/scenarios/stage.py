"""What a scenario is played on: the real engine, the real rule clock, and what a store would have kept.

The commands (times are such as ``90s``, ``2m``, ``21s+1ns`` since the first boot, and never go back):

    begin [chips=1] [group=NAME]            start with npu0, npu1, ... observed, and reset together in a group
    TIME show                               every device as it stands, and what is open
    TIME why DEVICE                         everything that contributes to its verdict
    TIME jobs                               every job as it stands, and every reset
    TIME stored                             how many inputs were stored since this was last asked
    TIME wall AHEAD                         the wall clock is so much ahead of the truth: +10h, -10h, right
    TIME restart|reload                     the daemon starts again; new tables
    TIME reboot [wall=AHEAD]                the machine starts again, perhaps with another wall clock
    TIME crash [compacted] [lost=CODE]      a new process: what was stored is replayed (compacted first), and
                                            nothing is emitted, unless the events of a code were lost
    TIME flood 300 COMMAND...               the command 300 times, each # in it a number; its last line only

All others are ``tables``'s, or inputs, which are ``inputs``'s. Each event shows the rule clock's time,
and where the wall clock shows another, that beside it.
"""

from collections.abc import Sequence

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    Carried,
    CatalogChanged,
    Event,
    Handling,
    Input,
    SourceBack,
    Started,
    Tick,
    Verdict,
)
from nodeagent.core.reconcile import PublishedState, published_by
from tests.scenarios.clocks import Clocks
from tests.scenarios.inputs import read, seen
from tests.scenarios.tables import Tables
from tests.scenarios.wording import described, options_of, parse_ns


class Stage:
    """``after_each`` is a command of the stage that is done, unheard, after every other: ``crash``."""

    def __init__(self, after_each: Sequence[str] = ()) -> None:
        self._after_each = after_each
        self._tables = Tables()
        self._catalogs: dict[str, Catalog] = {}
        self._engine = Engine(self._catalogs)
        self._clocks = Clocks()
        self._boots = 1
        self._carried: tuple[Carried, ...] = ()
        self._carried_at_ns = 0
        self._stored: list[tuple[int, Input]] = []
        self._emitted: list[Event] = []
        self._all_emitted: list[Event] = []
        self._stored_since = 0

    def perform(self, command: str) -> list[str]:
        """The output of one command, in lines. Raises ValueError for a command that is none."""
        verb, *words = command.split()
        if self._tables.perform(verb, words):
            return []
        if verb == "begin":
            return self._begin(words)
        self._clocks.now_ns = parse_ns(verb)
        lines = self._do(words)
        if self._after_each:
            self._crash(self._after_each)
        return lines

    def _do(self, words: Sequence[str]) -> list[str]:
        match words:
            case ["show"]:
                return [*self._step(Tick()), *self._show()]
            case ["jobs"]:
                return [*self._step(Tick()), *self._jobs()]
            case ["why", device]:
                return [*self._step(Tick()), *self._why(device)]
            case ["stored"]:
                return [*self._step(Tick()), self._count_stored()]
            case ["wall", ahead]:
                return self._step_wall(ahead)
            case ["crash", *how]:
                return self._crash(how)
            case ["flood", number, *each]:
                return self._flood(int(number), each)
            case ["reload"]:
                return self._step(self._catalog())
            case ["restart"]:
                return self._start(rebooted=False)
            case ["reboot", *how]:
                return self._reboot(how)
        return self._step(read(self._clocks.rule_ns(), words))

    def wrongly_published(self) -> list[str]:
        """The devices whose verdict and handling are not those that the last event about them said."""
        said = {event.device_id: (event.verdict, event.handling) for event in self._all_emitted}
        free = (Verdict.ALLOW, Handling.NONE)
        return [
            device.name
            for device in self._engine.view().devices
            if said.get(device.id, free) != (device.verdict, device.handling)
        ]

    # ------------------------------------------------------------------ inputs

    def _begin(self, words: list[str]) -> list[str]:
        _, options = options_of(words)
        self._step(self._catalog())
        self._step(Started(boot_id="boot-1", version="1"))
        group = [f"group={options['group']}"] if "group" in options else []
        for index in range(int(options.get("chips", "1"))):
            self._step(seen(["seen", f"npu{index}", f"die{index}", f"0000:0{index}:00.0", *group]))
        self._step(SourceBack(source="ascend", required=True))
        self._count_stored()
        return []

    def _catalog(self) -> CatalogChanged:
        """The tables as they stand, added to those that the engine may be given."""
        digest = f"tables-{len(self._catalogs) + 1}"
        self._catalogs[digest] = self._tables.catalog(digest)
        return CatalogChanged(digest=digest)

    def _step(self, given: Input) -> list[str]:
        at_ns = self._clocks.rule_ns()
        outcome = self._engine.step(at_ns, given)
        self._clocks.commit()
        self._stored += [(at_ns, record) for record in outcome.records]
        self._stored_since += len(outcome.records)
        return self._describe(outcome.events)

    def _describe(self, events: Sequence[Event]) -> list[str]:
        self._emitted += events
        self._all_emitted += events
        return [described(event, self._clocks.wall_offset_ns()) for event in events]

    def _reboot(self, how: Sequence[str]) -> list[str]:
        _, options = options_of(list(how))
        if "wall" in options:
            self._clocks.step_wall(options["wall"])
        return self._start(rebooted=True)

    def _start(self, rebooted: bool) -> list[str]:
        self._boots += rebooted
        self._clocks.start(rebooted)
        started = Started(boot_id=f"boot-{self._boots}", version="1", doubt=self._clocks.doubt)
        return self._step(started)

    def _step_wall(self, ahead: str) -> list[str]:
        lines = self._step(Tick())
        self._clocks.step_wall(ahead)
        return lines

    def _flood(self, number: int, command: Sequence[str]) -> list[str]:
        lines = []
        for index in range(number):
            lines += self._do([word.replace("#", str(index)) for word in command])
        return [f"{len(lines)} lines, the last:", *lines[-1:]]

    # ------------------------------------------------------------------ the next process

    def _crash(self, how: Sequence[str]) -> list[str]:
        """What the last commit left is all that the next process has."""
        plain, options = options_of(list(how))
        lines = self._step(Tick())
        if "compacted" in plain:
            self._compact()
        before = self._engine
        self._engine = Engine(self._catalogs)
        for carried in self._carried:
            self._engine.replay(self._carried_at_ns, carried)
        for stored_ns, record in self._stored:
            self._engine.replay(stored_ns, record)
        self._engine.resume(before.now_ns)
        same = self._engine.view() == before.view()
        lines.append("rebuilt as it was" if same else "REBUILT DIFFERENTLY")
        return lines + self._reconcile(options.get("lost", ""))

    def _compact(self) -> None:
        """One cell a line is all that is kept of what came before."""
        self._carried = self._engine.carry()
        self._carried_at_ns = self._engine.now_ns
        self._stored, self._emitted = [], []

    def _reconcile(self, lost_code: str) -> list[str]:
        known = published_by(self._carried)
        known.add(self._emitted)
        kept = {key: one for key, one in known.conditions.items() if one.code != lost_code}
        outcome, differences = self._engine.reconcile(PublishedState(conditions=kept, shown=known.shown))
        lines = self._describe(outcome.events)
        return [*lines, f"{differences} differed from what had been published"] if differences else lines

    # ------------------------------------------------------------------ what can be seen

    def _show(self) -> list[str]:
        view = self._engine.view()
        lines = [
            f"{device.name}: {device.level}, {device.verdict}, {device.handling}"
            + (", subhealthy" if device.subhealthy else "")
            + ("" if device.observed else ", not observed")
            for device in view.devices
        ]
        lines += [f"open: {one.id} at {one.level}, count {one.presence.count}" for one in view.conditions]
        lines += [f"promoted: {one.id} to {one.level}" for one in view.promotions if one.effective]
        return lines + [f"held: {one.id} by {one.owner}" for one in view.holds]

    def _why(self, name: str) -> list[str]:
        (device,) = [device for device in self._engine.view().devices if device.name == name]
        stands = f"{name}: {device.level}, {device.verdict}, {device.handling}"
        return [
            stands,
            *(
                f"  because of the {reason.kind} {reason.id}"
                + (f" at {reason.level}" if reason.level else "")
                + f": {reason.text}"
                for reason in device.reasons
            ),
        ]

    def _jobs(self) -> list[str]:
        view = self._engine.view()
        lines = [
            f"{job.name}: {job.stage or 'no supervisor'}"
            + (f", run {job.run}, {job.wanted or 'nothing'} is wanted" if job.stage else "")
            + (", isolated" if job.isolated else "")
            + f"; recommended {job.recommended}"
            for job in view.jobs
        ]
        return lines + [f"{reset.id}: {reset.stage}" for reset in view.resets]

    def _count_stored(self) -> str:
        since, self._stored_since = self._stored_since, 0
        return f"{since} inputs stored"
