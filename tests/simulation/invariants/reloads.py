"""New tables reword what is open and end what has no rule; they begin nothing."""

from nodeagent.core.catalog.catalog import FrequencyRule
from nodeagent.core.catalog.codes import canonical
from nodeagent.core.catalog.levels import milder
from nodeagent.core.model import Belief, CatalogChanged, Condition, EventKind, Level, Promotion
from tests.simulation.history import Broken, Step
from tests.simulation.twins.rows import duration_rule, is_related, row_of
from tests.simulation.watch import Invariant

_ALLOWED = {
    EventKind.TABLES_RELOADED,
    EventKind.LEVEL_CHANGED,
    EventKind.VERDICT_CHANGED,
    EventKind.CLEARED,
    EventKind.RELEASED,
}


class ReloadBeginsNothing(Invariant):
    """Nor does the turn after it, at the same moment. Promotions stay as long as their rule does."""

    name = "a reload raises and promotes nothing"

    def __init__(self) -> None:
        self._reloaded_ns = 0

    def on_step(self, step: Step) -> None:
        reloads = isinstance(step.given, CatalogChanged) and bool(step.before.digest)
        if reloads:
            self._reloaded_ns = step.now_ns
        if step.now_ns == self._reloaded_ns and (reloads or step.given.__class__.__name__ == "Tick"):
            for event in step.events:
                if event.kind not in _ALLOWED:
                    raise Broken(self.name, f"{event.kind} {event.code} on {event.device}: {event.why}")
        if reloads:
            self._check_promotions(step)
            for condition in step.after.conditions:
                self._check_level(step, condition)

    def _check_promotions(self, step: Step) -> None:
        rules = {rule.id: rule for rule in step.catalog.frequency}
        promotions = {one.id: one for one in step.after.promotions}
        for promotion in step.before.promotions:
            rule = rules.get(promotion.rule)
            code = canonical(promotion.code)
            names = rule is not None and ("*" in rule.codes or code in map(canonical, rule.codes))
            after = promotions.get(promotion.id)
            is_quiet = rule is not None and _is_over(promotion, rule, step.now_ns)
            if (after is not None) != names and promotion.effective and not is_quiet:
                raise Broken(self.name, f"{promotion.id} was {'dropped' if names else 'kept'}")
            if after is not None and rule is not None and after.level is not rule.level:
                raise Broken(self.name, f"{promotion.id} has {after.level}, its rule {rule.level}")

    def _check_level(self, step: Step, condition: Condition) -> None:
        row = row_of(step.catalog, condition.code)
        if row is None or row.levels or is_related(step.catalog, condition.code):
            return
        rule = duration_rule(step.catalog, condition.code)
        expected = {row.level} | ({rule.level} if rule is not None and condition.grade.timed_out else set())
        if condition.backing.belief is Belief.DISREGARDED:
            expected = {milder(level, Level.SUB_HEALTH) for level in expected}
        if condition.level not in expected:
            raise Broken(self.name, f"{condition.id} has {condition.level}, its row {row.level}")


def _is_over(promotion: Promotion, rule: FrequencyRule, now_ns: int) -> bool:
    """Quiet for longer than its rule now asks."""
    if promotion.quiet_since_ns is None or rule.release_ns is None:
        return False
    return now_ns > promotion.quiet_since_ns + rule.release_ns
