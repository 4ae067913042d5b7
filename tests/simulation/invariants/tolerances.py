"""RestartRequest, and RestartBusiness in the graceful mode: how long each is tolerated."""

from nodeagent.core.catalog.settings import SECOND_NS, Mode, Settings
from nodeagent.core.model import Condition, Level
from tests.simulation.history import Broken, Step
from tests.simulation.twins.modes import settings_on
from tests.simulation.twins.observed import Observed
from tests.simulation.watch import Invariant


class ToleratedForItsTime(Invariant):
    name = "a tolerance ends just past its time"

    def __init__(self) -> None:
        self._observed = Observed()
        self._catalog = ""
        self._reloaded_ns = 0

    def on_step(self, step: Step) -> None:
        self._observed.step(step)
        if step.catalog.digest != self._catalog:
            self._catalog, self._reloaded_ns = step.catalog.digest, step.now_ns
        for condition in step.after.conditions:
            self._check(step, condition)

    def _check(self, step: Step, condition: Condition) -> None:
        settings = settings_on(step.after, condition.device_id, step.catalog.settings)
        limits_ns = _limits_ns(settings, condition.level)
        present_ns = condition.presence.present_ns
        if not limits_ns or present_ns is None or condition.presence.opened_ns <= self._reloaded_ns:
            return
        if (
            condition.grade.user_induced
            or condition.origin.injected
            or condition.presence.recovered_ns is not None
        ):
            return
        since_ns = max(present_ns, condition.grade.level_since_ns)
        passed = sum(step.now_ns > since_ns + limit_ns for limit_ns in limits_ns)
        awaited = self._observed.awaits(condition.source, condition.device_id, step.now_ns)
        early = condition.grade.phase > passed and present_ns == condition.presence.opened_ns
        if early or (condition.grade.phase < passed and not awaited):
            elapsed_s = (step.now_ns - since_ns) / 1e9
            raise Broken(self.name, f"{condition.id} is in phase {condition.grade.phase} after {elapsed_s} s")


def _limits_ns(settings: Settings, level: Level) -> tuple[int, ...]:
    if level is Level.RESTART_REQUEST and settings.request_tolerance_ns:
        return (60 * SECOND_NS,)
    if level is Level.RESTART_BUSINESS and settings.mode is Mode.GRACEFUL:
        return (60 * SECOND_NS,)
    return ()
