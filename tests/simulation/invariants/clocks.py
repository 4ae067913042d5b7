"""The rule clock, worked out from the time that truly passed."""

from dataclasses import dataclass

from nodeagent.daemon.clock import MAX_OFF_NS
from tests.simulation.history import Broken, Step
from tests.simulation.watch import Invariant
from tests.simulation.world import World


@dataclass(frozen=True, slots=True)
class _Anchor:
    """All clocks at one moment; ``boot`` 0 before the first."""

    boot: int = 0
    true_ns: int = 0
    wall_ns: int = 0
    rule_ns: int = 0

    def rule_at(self, true_ns: int) -> int:
        return self.rule_ns + true_ns - self.true_ns


class RuleClock(Invariant):
    """Within a boot it runs with true time, whatever the wall clock says; across boots by that, bounded."""

    name = "windows see the true time, not the wall clock's"

    def __init__(self) -> None:
        self._durable = _Anchor()
        self._begun = _Anchor()

    def on_start(self, world: World) -> None:
        last = self._durable
        if last.boot == world.boot:
            rule_ns = last.rule_at(world.true_ns)
        elif last.boot:
            rule_ns = last.rule_ns + min(max(0, world.wall_ns() - last.wall_ns), MAX_OFF_NS)
        else:
            rule_ns = world.wall_ns()
        self._begun = _Anchor(world.boot, world.true_ns, world.wall_ns(), rule_ns)

    def on_anchor(self, world: World) -> None:
        rule_ns = self._begun.rule_at(world.true_ns)
        self._durable = _Anchor(world.boot, world.true_ns, world.wall_ns(), rule_ns)

    def on_step(self, step: Step) -> None:
        off_ns = step.now_ns - self._begun.rule_at(step.true_ns)
        if off_ns:
            raise Broken(self.name, f"off by {off_ns / 1e9} s at {type(step.given).__name__}")
