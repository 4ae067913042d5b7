"""The frequency rule against its twin: which promotions stand, pending or in force, after every step."""

from nodeagent.core.model import Kind
from tests.simulation.catalogs import is_tangled
from tests.simulation.history import Broken, Step
from tests.simulation.twins.repeating import FrequencyTwin
from tests.simulation.twins.rows import canonical, row_of
from tests.simulation.watch import Invariant


class RepetitionPromotes(Invariant):
    name = "a promotion stands where the whole history says so"

    def __init__(self) -> None:
        self._twin = FrequencyTwin()

    def on_step(self, step: Step) -> None:
        twin = self._twin
        twin.step(step)
        chips = {one.id for one in step.after.devices if one.kind is Kind.CHIP}
        shown = {}
        for one in step.after.promotions:
            key = one.device_id, canonical(one.code), one.rule
            row = row_of(step.catalog, one.code)
            judged = (
                row is not None and not row.user_induced and not is_tangled(step.catalog.digest, one.code)
            )
            if judged and one.device_id in chips and one.code not in ("HOT", "STORM"):
                shown[key] = one.effective
        expected = {key: one.effective for key, one in twin.promoted.items()}
        wrong = {
            key
            for key in shown.keys() | expected.keys()
            if shown.get(key) != expected.get(key) and key[1] not in twin.left_out
        }
        if wrong:
            found = {key: (shown.get(key), twin.promoted.get(key)) for key in wrong}
            raise Broken(self.name, f"effective as shown, and as it should be: {found}")
