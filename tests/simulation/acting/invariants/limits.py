"""How often hardware is reset, and that only one group is at a time."""

from collections.abc import Iterable

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import ActionResult, Reset, ResetMode, ResetStage
from tests.simulation.acting.tables import NODE_LIMIT
from tests.simulation.history import Attempt, Broken, HardwareReset, Step
from tests.simulation.watch import Invariant

LIMIT = 3
WINDOW_NS = 6 * 3600 * SECOND_NS
COOL_DOWN_NS = 30 * SECOND_NS

_UNDER_WAY = (ResetStage.RUNNING, ResetStage.VERIFYING)


class ChipsHaveALimit(Invariant):
    """Every true reset of the hardware counts, whatever the daemon remembers, in any window.

    In true time; except that a wall clock that was wrong over a boot may have made more of the time that
    the machine was off: nothing could correct the daemon.
    """

    name = "no chip is reset more often than its limit allows"

    def __init__(self) -> None:
        self._resets: dict[str, list[HardwareReset]] = {}

    def on_reset(self, reset: HardwareReset) -> None:
        for identity in reset.identities:
            of_chip = self._resets.setdefault(identity, [])
            of_chip.append(reset)
            if (times := _within(of_chip, reset)) > LIMIT:
                raise Broken(self.name, f"{identity} was reset {times} times, last by {reset.attempt}")


class NodeHasALimit(Invariant):
    name = "no node resets more often than its limit allows"

    def __init__(self) -> None:
        self._resets: list[HardwareReset] = []

    def on_reset(self, reset: HardwareReset) -> None:
        self._resets.append(reset)
        if (times := _within(self._resets, reset)) > NODE_LIMIT:
            raise Broken(self.name, f"{times} times, last by {reset.attempt}")


class OneAtATime(Invariant):
    """In what the agent holds, and in what truly happens: hardware is reset only by what runs."""

    name = "one group is reset at a time"

    def __init__(self) -> None:
        self._running: Attempt | None = None

    def on_step(self, step: Step) -> None:
        under_way = [reset for reset in step.after.resets if _is_under_way(reset)]
        if len(under_way) > 1:
            raise Broken(self.name, f"{[reset.id for reset in under_way]} are under way")
        running = [reset for reset in under_way if reset.stage is ResetStage.RUNNING]
        self._running = Attempt(running[0].id, running[0].attempt) if running else None

    def on_reset(self, reset: HardwareReset) -> None:
        if reset.attempt != self._running:
            raise Broken(self.name, f"{reset.attempt} resets while {self._running} runs")


class CoolsDown(Invariant):
    """From the result of one, or from when none was waited for any longer, to the start of the next."""

    name = "a reset cools down before the next"

    def __init__(self) -> None:
        self._ended_ns = -COOL_DOWN_NS

    def on_step(self, step: Step) -> None:
        if step.after is step.before:
            return
        before = {reset.id: reset for reset in step.before.resets}
        for reset in step.after.resets:
            was = before.get(reset.id)
            ran = was is not None and was.stage is ResetStage.RUNNING
            if reset.mode is not ResetMode.DRY_RUN and reset.started_ns is not None:
                began = was is None or was.started_ns != reset.started_ns
                if began and reset.started_ns < self._ended_ns + COOL_DOWN_NS:
                    cooled_s = (reset.started_ns - self._ended_ns) / 1e9
                    raise Broken(self.name, f"{reset.id} began after {cooled_s} s")
            if ran and reset.stage is not ResetStage.RUNNING and not _was_refused(step):
                self._ended_ns = max(self._ended_ns, reset.ended_ns or step.now_ns)


def _was_refused(step: Step) -> bool:
    return isinstance(step.given, ActionResult) and step.given.state.value == "refused"


def _within(resets: Iterable[HardwareReset], last: HardwareReset) -> int:
    return sum(
        last.true_ns - one.true_ns <= WINDOW_NS and last.rule_ns - one.rule_ns <= WINDOW_NS for one in resets
    )


def _is_under_way(reset: Reset) -> bool:
    return reset.stage in _UNDER_WAY and reset.mode is not ResetMode.DRY_RUN
