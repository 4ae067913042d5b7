"""What the core must know of a kind of rules that tables can name: one record a kind, made in the kind's
file.

A kind counts, and works out levels. It closes no fault and opens none by itself: what it raises is a signal
of its source like any other, which it hands to the function that it is given (``Raise``).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeagent.core.catalog.lookup import Facts
from nodeagent.core.model import Condition, Grade, Level, RuleCell, Signal
from nodeagent.core.state.state import EngineState

Raise = Callable[[EngineState, Signal, str], bool]
"""Takes a signal that the rule of this id makes, at once. True if anything changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raising:
    """Of a kind that raises a fault of its own from what it watches. ``cell`` is the type of its cells,
    ``tag`` the name of these in the store, which never changes. ``handlers`` take inputs by their type, after
    the others that take the same, and return whether anything changed. ``due``: the deadline of a cell, None
    where none has one. ``review``: what it looks at after every change.
    """

    tag: str
    cell: type[RuleCell]
    handlers: Mapping[type, Callable[[EngineState, Any, Raise], bool]] = field(default_factory=dict)
    due: Callable[[EngineState, Any, Raise], None] | None = None
    review: Callable[[EngineState, Raise], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleKind:
    """What a kind does at each change of a condition; None for nothing.

    ``level`` is the level that it makes of the one so far, by what the tables have about the code.
    ``occurred`` counts occurrences at a time, ``present`` takes that the fault is there, ``recovered`` that
    it is no longer, and ``ended`` that its condition is gone.
    """

    name: str
    level: Callable[[Facts, Grade, Level], Level] | None = None
    occurred: Callable[[EngineState, Condition, int, int], None] | None = None
    present: Callable[[EngineState, Condition], None] | None = None
    recovered: Callable[[EngineState, Condition, int], None] | None = None
    ended: Callable[[EngineState, Condition], None] | None = None
    raising: Raising | None = None
