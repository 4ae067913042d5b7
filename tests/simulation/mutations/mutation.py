"""A mutation: a named defect, put into the core for a while; and who catches it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from nodeagent.core import engine
from nodeagent.core.state.state import EngineState
from tests.simulation.run import simulate

Replacement = tuple[Any, str, Any]
"""Where, what, by what."""

Caught = tuple[int, str]
"""By which seed and which invariant."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """``handlers``: by type of input, what takes it instead."""

    name: str
    replacements: tuple[Replacement, ...] = ()
    handlers: Mapping[type, Callable[[EngineState, Any], bool]] | None = None

    @contextmanager
    def applied(self) -> Iterator[None]:
        with ExitStack() as stack:
            for where, what, by in self.replacements:
                stack.enter_context(patch.object(where, what, by))
            if self.handlers is not None:
                stack.enter_context(patch.dict(engine._HANDLERS, self.handlers))
            yield


def catching_seed(
    mutation: Mutation, seeds: Iterable[int], hours: float, life: str = "rules"
) -> Caught | None:
    """The first seed that shows the mutation and the invariant that it breaks; None if none of them does.

    Where the engine itself falls over, that counts, under the name of what it raised.
    """
    with mutation.applied():
        for seed in seeds:
            try:
                result = simulate(seed, hours, life=life)
            except (AssertionError, KeyError, ValueError) as fallen:
                return seed, type(fallen).__name__
            if result.broken:
                return seed, result.invariant
    return None
