"""In place of the shell's actuator: a process for each attempt, with a lock, a result file, and its own fate.

Processes, locks and files belong to the machine: they outlive the daemon and end with the boot. The daemon
may die between any two steps of this.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import Action, ActionResult, ActionState, Reset, ResetStage
from tests.simulation.acting import hardware
from tests.simulation.history import Attempt
from tests.simulation.watch import Watch
from tests.simulation.world import Activity, Crash, Does, World

_FATES = {
    "done": 16,
    "fails before": 2,
    "fails after": 2,
    "is refused": 2,
    "hangs before": 2,
    "hangs after": 2,
    "hangs on": 2,
    "says nothing": 1,
    "dies before": 2,
    "dies after": 2,
}
_CRASHES = 0.04
"""How often the daemon dies at each step of an attempt."""


@dataclass(slots=True)
class _Process:
    attempt: Attempt
    action: Action
    boot: int


class Actuator:
    """``submit`` gives an input to the daemon, True if it lived on after the commit."""

    def __init__(self, world: World, watch: Watch, submit: Callable[[ActionResult], bool]) -> None:
        self._world = world
        self._watch = watch
        self._submit = submit
        self._processes: dict[Attempt, _Process] = {}
        self._results: dict[Attempt, ActionResult] = {}

    # ------------------------------------------------------------------ the daemon's side

    def take(self, action: Action, number: int) -> None:
        """After the commit. The request is written and the process started."""
        attempt = Attempt(action.id, number)
        if attempt in self._processes or attempt in self._results:
            return
        self._processes[attempt] = process = _Process(attempt, action, self._world.boot)
        self._world.begin(self._runs(process))
        self._may_die()

    def take_over(self, resets: Iterable[Reset]) -> None:
        """At a start: what runs is adopted, a result handed in, and what is neither was interrupted."""
        for reset in resets:
            attempt = Attempt(reset.id, reset.attempt)
            if reset.stage is not ResetStage.RUNNING or attempt in self._processes:
                continue
            if attempt not in self._results:
                self._end(attempt, self._result(attempt, ActionState.INTERRUPTED, "no result"))
            self._hand_in(attempt)

    def reboots(self) -> None:
        """Nothing of it outlives the boot."""
        self._processes.clear()
        self._results.clear()

    def _hand_in(self, attempt: Attempt) -> None:
        """The result file is removed only after the commit."""
        result = self._results.get(attempt)
        if result is not None and self._world.listening and self._submit(result):
            self._results.pop(attempt, None)

    # ------------------------------------------------------------------ the process

    def _runs(self, process: _Process) -> Activity:
        world, attempt = self._world, process.attempt
        fate = world.rng.choices(tuple(_FATES), tuple(_FATES.values()))[0]
        yield world.rng.choice((0, 5 * SECOND_NS, 200 * SECOND_NS))
        if not self._lives(process):
            return
        if any(one is not process and self._shares(one, process) for one in self._processes.values()):
            fate = "is refused"
        if fate.endswith("after") or fate in ("done", "says nothing"):
            self._may_die()
            self._watch.reset(hardware.reset(world, attempt, process.action.devices))
            self._may_die()
            yield world.rng.choice((5, 20, 40)) * SECOND_NS
        if fate.startswith("hangs"):
            left_ns = process.action.deadline_ns - world.rule_ns(world.true_ns)
            late_ns = (40 * SECOND_NS, 90 * SECOND_NS) if fate == "hangs on" else (-SECOND_NS, -1, 0)
            yield max(0, left_ns + world.rng.choice(late_ns))
        if not self._lives(process):
            return
        del self._processes[attempt]
        if fate.startswith("dies"):
            self._end(attempt, self._result(attempt, ActionState.INTERRUPTED))
        elif fate != "says nothing":
            self._end(attempt, self._result(attempt, _state(fate)))
        if self._may_die():
            return
        world.act(Does(lambda: self._hand_in(attempt)))

    def _lives(self, process: _Process) -> bool:
        return process.boot == self._world.boot and process.attempt in self._processes

    def _shares(self, one: _Process, other: _Process) -> bool:
        return not set(one.action.devices).isdisjoint(other.action.devices)

    def _result(self, attempt: Attempt, state: ActionState, reason: str = "the tool said so") -> ActionResult:
        return ActionResult(action_id=attempt.action_id, attempt=attempt.number, state=state, reason=reason)

    def _end(self, attempt: Attempt, result: ActionResult) -> None:
        self._results[attempt] = result
        self._watch.attempt_ended(attempt, result)

    def _may_die(self) -> bool:
        """The daemon dies here, and not what it has started."""
        dies = self._world.rng.random() < _CRASHES
        if dies:
            down_ns = self._world.rng.choice((0, SECOND_NS, 20 * SECOND_NS, 900 * SECOND_NS))
            self._world.act(Crash(where="idle", down_ns=down_ns))
        return dies


def _state(fate: str) -> ActionState:
    if fate == "done":
        return ActionState.DONE
    if fate == "is refused":
        return ActionState.REFUSED
    return ActionState.TIMED_OUT if fate.startswith("hangs") else ActionState.FAILED
