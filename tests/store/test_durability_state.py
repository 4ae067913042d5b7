"""The table of durability: the documented table is the one that is used, and no state is a dead end."""

import re

import pytest

from nodeagent.store.disk import durability_state
from nodeagent.store.disk.durability_state import (
    TRANSITIONS,
    DurabilityState,
    DurabilityTrigger,
    IllegalDurabilityTransition,
    after,
)


def documented() -> dict[tuple[str, str], str]:
    """The table of the module's docstring: (state, trigger) -> the next state, "-" where it cannot happen."""
    lines = [
        line.strip() for line in (durability_state.__doc__ or "").splitlines() if line.startswith("    ")
    ]
    triggers = re.split(r" {2,}", lines[0])[1:]
    rows = (re.split(r" {2,}", line) for line in lines[1:])
    return {(row[0], trigger): then for row in rows for trigger, then in zip(triggers, row[1:], strict=True)}


def test_the_documented_table_is_the_table() -> None:
    expected = {
        (state.value, trigger.value): TRANSITIONS.get((state, trigger), "-")
        for state in DurabilityState
        for trigger in DurabilityTrigger
    }

    assert documented() == expected


def test_what_the_table_lacks_is_refused() -> None:
    with pytest.raises(IllegalDurabilityTransition, match="a store that is durable cannot take"):
        after(DurabilityState.DURABLE, DurabilityTrigger.REJOINED)


def test_a_store_that_fails_stays_undurable_until_it_rejoins() -> None:
    state = after(DurabilityState.DURABLE, DurabilityTrigger.FAILED)

    assert after(state, DurabilityTrigger.FAILED) is DurabilityState.IN_MEMORY
    assert after(state, DurabilityTrigger.REJOINED) is DurabilityState.DURABLE
