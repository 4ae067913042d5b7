"""A backtracking matcher that counts its steps: as ``re`` tries the ways, but none of them in short.

It knows the little of expressions that a test makes up. Its tree is that of ``re``.
"""

from collections.abc import Iterator, Sequence
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

Node = tuple[Any, Any]


class TooManyStepsError(Exception):
    """More than a test allows."""


class Backtracker:
    """Matches at the beginning of ``text``; ``steps`` is what that took."""

    def __init__(self, text: str, limit: int) -> None:
        self.steps = 0
        self._text = text
        self._limit = limit

    def match(self, regex: str) -> bool:
        """Raises ``TooManyStepsError``."""
        return next(self._sequence(list(_parser.parse(regex)), 0), None) is not None

    def _step(self) -> None:
        self.steps += 1
        if self.steps > self._limit:
            raise TooManyStepsError

    def _sequence(self, nodes: Sequence[Node], at: int) -> Iterator[int]:
        self._step()
        if not nodes:
            yield at
            return
        for end in self._node(*nodes[0], at):
            yield from self._sequence(nodes[1:], end)

    def _node(self, operator: Any, argument: Any, at: int) -> Iterator[int]:
        if operator is op.BRANCH:
            for alternative in argument[1]:
                yield from self._sequence(list(alternative), at)
        elif operator is op.SUBPATTERN:
            yield from self._sequence(list(argument[-1]), at)
        elif operator is op.ASSERT_NOT:
            if next(self._sequence(list(argument[1]), at), None) is None:
                yield at
        elif operator is op.MAX_REPEAT:
            least, most, nodes = argument
            yield from self._repeat(least, most, nodes, at, 0)
        elif at < len(self._text) and _takes(operator, argument, ord(self._text[at])):
            yield at + 1

    def _repeat(self, least: int, most: int, nodes: Any, at: int, turn: int) -> Iterator[int]:
        self._step()
        if turn < most:
            for end in self._sequence(list(nodes), at):
                if end > at or turn < least:
                    yield from self._repeat(least, most, nodes, end, turn + 1)
        if turn >= least:
            yield at


def _takes(operator: Any, argument: Any, character: int) -> bool:
    if operator is op.IN:
        return any(taken == character for _, taken in argument)
    return operator is op.ANY or (argument == character) is (operator is op.LITERAL)
