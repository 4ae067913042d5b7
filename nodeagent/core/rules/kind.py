"""What the core must know of a kind of rules that raise a fault of their own from what they watch.

A kind is one file: its type of cells, which says when it is due, its handlers, and its record. ``kinds``
lists them. What such a rule raises is a signal of its source like any other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeagent.core.model import RuleCell
from nodeagent.core.state.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleKind:
    """``tag`` is the name of its cells in the store, which never changes. ``handlers`` take inputs by their
    type, and say whether anything changed, besides whoever else takes them. ``due``: the deadline of a cell,
    None where none has one. ``review``: what it looks at after every change.
    """

    tag: str
    cell: type[RuleCell]
    handlers: Mapping[type, Callable[[State, Any], bool]] = field(default_factory=dict)
    due: Callable[[State, Any], None] | None = None
    review: Callable[[State], None] | None = None
