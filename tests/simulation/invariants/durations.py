"""The duration rule against its twin: open or not, in force or not, after every step."""

from nodeagent.core.catalog.catalog import Catalog
from tests.simulation.history import Broken, Step
from tests.simulation.twins.lasting import DurationTwin
from tests.simulation.twins.rows import canonical, duration_rule, is_related
from tests.simulation.watch import Invariant


class DurationsAreExact(Invariant):
    name = "a duration times out, and clears, just past its time"

    def __init__(self) -> None:
        self._twin = DurationTwin()

    def on_step(self, step: Step) -> None:
        self._twin.step(step)
        shown = {
            (one.device_id, canonical(one.code)): one.grade.timed_out
            for one in step.after.conditions
            if not one.origin.injected and _is_judged(step.catalog, one.code)
        }
        self._twin.left_out &= {(one.device_id, canonical(one.code)) for one in step.after.conditions}
        shown = {fault: in_force for fault, in_force in shown.items() if fault not in self._twin.left_out}
        expected = {
            fault: lasting.in_force
            for fault, lasting in self._twin.open.items()
            if fault not in self._twin.left_out
        }
        if shown != expected:
            wrong = {key for key in shown.keys() | expected.keys() if shown.get(key) != expected.get(key)}
            found = {key: (shown.get(key), self._twin.open.get(key)) for key in wrong}
            raise Broken(self.name, f"in force as shown, and as it should be: {found}")


def _is_judged(catalog: Catalog, code: str) -> bool:
    return duration_rule(catalog, code) is not None and not is_related(catalog, code)
