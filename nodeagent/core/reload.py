"""A change of the catalog under open conditions: they take the new words; nothing is raised or reopened."""

from dataclasses import replace

from nodeagent.core import duration, frequency
from nodeagent.core.catalog import Catalog
from nodeagent.core.lookup import Lookup
from nodeagent.core.model import CatalogChanged, Condition, Device, EventKind, Promotion, TablesRejected
from nodeagent.core.state import State
from nodeagent.core.telling import tell


def changed(state: State, given: CatalogChanged) -> bool:
    """Judge by the catalog of that digest from here on.

    Raises KeyError where the shell did not add the catalog before the input: its error, not a bad input.
    """
    before = state.era
    if before.digest == given.digest:
        return False
    _swap(state, state.catalogs[given.digest])
    state.mark(device.id for device in state.all(Device))
    if before.digest:
        why = f"catalog {before.digest[:12]} -> {given.digest[:12]}"
        tell(state, EventKind.TABLES_RELOADED, state.device(state.node_id), source="agent", why=why)
    for condition in list(state.all(Condition)):
        _reword(state, condition)
    for promotion in list(state.all(Promotion)):
        _review(state, promotion)
    state.rearm()
    return True


def rejected(state: State, given: TablesRejected) -> bool:
    node = state.device(state.node_id)
    tell(state, EventKind.TABLES_REJECTED, node, source="agent", why=given.reason)
    return True


def _swap(state: State, catalog: Catalog) -> None:
    state.lookup = Lookup(catalog)
    state.put(replace(state.era, digest=catalog.digest))


def _reword(state: State, condition: Condition) -> None:
    """The open condition takes the row's level and words. A code without a row keeps what it had."""
    row = state.lookup.row(condition.code)
    base = row.level if row is not None else condition.base_level
    level = duration.level_in_force(state, condition.code, base, condition.timed_out)
    after = replace(
        condition,
        base_level=base,
        level=level,
        name=row.name if row is not None else condition.name,
        affects=row.affects if row is not None else condition.affects,
        user_induced=row.user_induced if row is not None else condition.user_induced,
        unknown=condition.unknown and (row is None or row.code.endswith("*")),
    )
    if level != condition.level:
        after = replace(after, level_since_ns=state.moment_ns, phase=0)
    if after == condition:
        return
    state.put(after)
    if level != condition.level:
        why = f"the tables changed: {condition.level} -> {level}"
        tell(state, EventKind.LEVEL_CHANGED, state.device(after.device_id), about=after, why=why)


def _review(state: State, promotion: Promotion) -> None:
    rule = state.lookup.frequency_by_id(promotion.rule)
    if rule is None:
        frequency.release(state, promotion, "its rule was removed from the tables")
    elif rule.level != promotion.level:
        after = replace(promotion, level=rule.level)
        state.put(after)
        if after.effective:
            why = f"its rule changed: {promotion.level} -> {rule.level}"
            tell(state, EventKind.LEVEL_CHANGED, state.device(after.device_id), about=after, why=why)
