"""The keys under which the state keeps its cells."""

from typing import Any

import pytest

from nodeagent.core.state.cells import KEYS, TAGS


class Anything:
    """A cell of which each field is its own name."""

    def __getattr__(self, name: str) -> str:
        return name


@pytest.mark.parametrize("of", KEYS, ids=TAGS.__getitem__)
def test_a_key_begins_with_what_a_cell_is_looked_up_by(of: type[Any]) -> None:
    assert KEYS[of](Anything())[0] == TAGS[of]
