"""New tables over what rules have raised: what a rule that is gone or changed leaves behind.

A rule that is gone takes its fault with it, for nobody would ever say that it is over. One whose bounds
changed forgets what it was still waiting for: what it hears next begins it anew, so that a reload raises
nothing.
"""

from nodeagent.core.catalog.lookup import Lookup
from nodeagent.core.faults import condition_end
from nodeagent.core.model import Condition
from nodeagent.core.state.state import State


def review(state: State, before: Lookup) -> None:
    """After a change of the catalog; ``before`` is what judged until now."""
    for of in state.rule_cells:
        for cell in state.all(of):
            old, new = before.raising_by_id(cell.rule), state.lookup.raising_by_id(cell.rule)
            if not _may_end(before, state.lookup, cell.rule) or not cell.survives_reload(old, new):
                state.drop(cell)
    for condition in state.all(Condition):
        if condition.rule and not _may_end(before, state.lookup, condition.rule):
            condition_end.end(state, condition, f"its rule {condition.rule} was removed from the tables")


def _may_end(before: Lookup, after: Lookup, rule_id: str) -> bool:
    """Whether the rule may still say that what it raised is over."""
    old, new = before.raising_by_id(rule_id), after.raising_by_id(rule_id)
    return old is not None and new is not None and old.raises_as(new)
