"""What holds whenever the shell waits: nothing is overdue, nothing grows; and in the end all is over."""

from nodeagent.core.engine import Engine
from nodeagent.core.model import NODE, Verdict, Window
from nodeagent.core.rules.kinds import RAISING
from nodeagent.core.state import limits
from tests.simulation.history import Broken
from tests.simulation.watch import Invariant
from tests.simulation.world import World


class DeadlinesFire(Invariant):
    name = "no deadline in the past is left"

    def on_rest(self, engine: Engine, queued: int) -> None:
        deadline_ns = engine.next_deadline()
        if deadline_ns is not None and deadline_ns <= engine.now_ns:
            raise Broken(self.name, f"{engine.now_ns - deadline_ns} ns ago")


class MemoryBounded(Invariant):
    """Caps of what is kept, no more timers than cells, a heap that is a small multiple, an empty queue."""

    name = "memory is bounded"

    def on_rest(self, engine: Engine, queued: int) -> None:
        state = engine._state
        cells = {of.__name__: len(kept) for of, kept in state.cells.items()}
        caps = {
            "Device": limits.MAX_DEVICES,
            "Condition": limits.MAX_CONDITIONS,
            "Promotion": limits.MAX_PROMOTIONS,
            "Hold": limits.MAX_HOLDS,
            "Noticed": limits.MAX_NOTICED,
            "Ordinal": limits.MAX_ORDINALS,
            **{kind.tag: limits.MAX_RULE_CELLS for kind in RAISING},
            "Era": 1,
        }
        over = [name for name, most in caps.items() if cells[name] > most]
        heap, live = len(state.timers._heap), len(state.timers._at_ns)
        if over or queued or live > sum(cells.values()) or heap > max(65, 4 * live + 1):
            raise Broken(self.name, f"over the cap: {over}; queued {queued}; heap {heap} of {live} timers")
        for window in state.cells[Window].values():
            if len(window.occurrences_ns) > 64:
                raise Broken(self.name, f"{len(window.occurrences_ns)} occurrences are kept of {window.code}")


class EverythingEnds(Invariant):
    """After a reboot that showed no fault, complete polls, releases and days of quiet nothing is left."""

    name = "what is over ends"

    def on_end(self, engine: Engine, world: World) -> None:
        view = engine.view()
        left = [one.id for one in view.conditions if _should_end(engine, one.code)]
        if left:
            raise Broken(self.name, f"still open: {left[:4]}")
        if view.holds:
            raise Broken(self.name, f"still held: {[hold.id for hold in view.holds]}")
        present = {part.name for part in world.parts} | {NODE}
        for device in view.devices:
            free = device.verdict is Verdict.ALLOW
            if (
                device.name in present
                and not free
                and not any(one.kind == "promotion" for one in device.reasons)
            ):
                raise Broken(self.name, f"{device.name} is {device.verdict}: {device.reasons}")


def _should_end(engine: Engine, code: str) -> bool:
    clear_on = engine._state.lookup.facts(code).clear_on
    return clear_on.recover or clear_on.reboot or clear_on.quiet_ns is not None or clear_on.operator
