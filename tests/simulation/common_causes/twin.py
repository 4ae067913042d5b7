"""A twin of the common-cause rule: counts anew who has the fault, where it begins, ends, and stands."""

from collections.abc import Iterable, Mapping

from nodeagent.core.catalog.catalog import Catalog, CommonCauseRule
from nodeagent.core.engine import Engine
from nodeagent.core.model import Absorbed, Assertion, Condition, EventKind, Signal, View
from tests.simulation.common_causes.activities import BRAKE, SUPPLY, common_catalogs
from tests.simulation.history import Broken, Step
from tests.simulation.twins.observed import device_id
from tests.simulation.watch import Invariant

Braked = Mapping[str, int]
"""By id of the chip, its newest brake."""


class CommonCausesStand(Invariant):
    name = "a fault of the node stands while as many devices have theirs at once"

    def __init__(self) -> None:
        self._tables, self._tables_ns = "", 0

    def on_step(self, step: Step) -> None:
        was, now = _supply(step.before) is not None, _supply(step.after) is not None
        is_reload = step.catalog.digest != self._tables
        braked = _open(step.after.conditions)
        if now and not was:
            braked = {**_open(step.before.conditions), **braked, **_occurred(step)}
            if is_reload or not self._is_at_once(step.catalog, braked):
                raise Broken(self.name, f"it begins with {braked}")
        is_judged = not is_reload and not step.catalog.relation
        if was and not now and is_judged and len(braked) >= _rule(step.catalog).devices:
            raise Broken(self.name, f"it ends with {braked}")
        if is_reload:
            self._tables, self._tables_ns = step.catalog.digest, step.now_ns

    def on_rest(self, engine: Engine, queued: int) -> None:
        catalog = common_catalogs().get(engine.digest)
        if catalog is None or not catalog.common_cause:
            return
        view = engine.view()
        supply, braked = _supply(view), _open(view.conditions)
        if supply is None:
            if self._is_at_once(catalog, braked):
                raise Broken(self.name, f"there is none, and {braked}")
            return
        for one in engine.carry():
            if isinstance(one.cell, Absorbed) and one.cell.root_id == supply.id:
                braked.setdefault(one.cell.device_id, one.cell.last_ns)
        if len(braked) < _rule(catalog).devices:
            raise Broken(self.name, f"it stands with {braked}")
        names = sorted(
            (one.name for one in view.devices if one.id in braked), key=lambda one: (len(one), one)
        )
        if supply.backing.evidence["devices"] != ", ".join(names):
            raise Broken(self.name, f"it names {supply.backing.evidence['devices']}, and it is of {names}")

    def _is_at_once(self, catalog: Catalog, braked: Braked) -> bool:
        """Whether enough of them lie near enough before one that came since the tables did."""
        rule = _rule(catalog)
        for newest_ns in braked.values():
            reach_ns = rule.within_ns or newest_ns
            near = [at_ns for at_ns in braked.values() if newest_ns - reach_ns <= at_ns <= newest_ns]
            if len(near) >= rule.devices and newest_ns > self._tables_ns:
                return True
        return False


def _rule(catalog: Catalog) -> CommonCauseRule:
    (rule,) = catalog.common_cause
    return rule


def _supply(view: View) -> Condition | None:
    (supply,) = [one for one in view.conditions if one.code == SUPPLY] or (None,)
    return supply


def _open(conditions: Iterable[Condition]) -> dict[str, int]:
    return {one.device_id: one.occurred_ns for one in conditions if one.code == BRAKE}


def _occurred(step: Step) -> dict[str, int]:
    """What occurred in the step, though it may go with the node's fault at once."""
    given, raised = step.given, [one for one in step.events if one.kind is EventKind.RAISED]
    found = {one.device_id: one.at_ns for one in raised if one.code == BRAKE}
    if isinstance(given, Signal) and given.assertion is Assertion.OCCUR and given.code == BRAKE:
        found[device_id(step.after, given.device)] = step.now_ns
    return found
