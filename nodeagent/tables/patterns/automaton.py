"""A regular expression as an automaton: which of its characters may stand behind which (Glushkov's).

Each place in the expression that takes one character is a state. What only decides where a match may stand
(``^``, ``\\b``, what must have come before) is left out, a look ahead is a way that leads nowhere, and a long
repetition with a bound is one without: so the automaton reads all that ``re`` can be made to read, and more.

It judges nothing. The expression must compile; its tree is that of ``re`` (CPython's Lib/re/_parser.py).
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Final, NamedTuple

MANY: Final = 16
"""A repetition that may take more turns than this is taken for one without a bound."""

_FEW: Final = 3
"""So many turns of something that is not simple are written out, but within no other repetition."""

_MAX_WRITTEN_OUT: Final = 64
_MAX_EDGES: Final = 50_000

_ASCII: Final = tuple(map(chr, range(128)))
OTHER: Final = 1 << 128
"""The bit for any character that is not ASCII: a set of characters is a number with a bit for each."""

ANY: Final = (OTHER << 1) - 1
REPEATS: Final = frozenset({op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT})
TAKING: Final = frozenset({op.ANY, op.LITERAL, op.NOT_LITERAL, op.IN})
"""What takes one character."""

_IGNORECASE: Final = int(re.IGNORECASE)
_DOTALL: Final = int(re.DOTALL)


def _set_of(holds: Callable[[str], bool]) -> int:
    """One that is not ASCII may be of any category, and of none."""
    return sum(1 << ord(character) for character in _ASCII if holds(character)) | OTHER


_CATEGORIES: Final[Mapping[Any, int]] = {
    op.CATEGORY_DIGIT: _set_of(str.isdigit),
    op.CATEGORY_NOT_DIGIT: _set_of(lambda c: not c.isdigit()),
    op.CATEGORY_SPACE: _set_of(str.isspace),
    op.CATEGORY_NOT_SPACE: _set_of(lambda c: not c.isspace()),
    op.CATEGORY_WORD: _set_of(lambda c: c.isalnum() or c == "_"),
    op.CATEGORY_NOT_WORD: _set_of(lambda c: not (c.isalnum() or c == "_")),
}


class TooLargeError(Exception):
    """The expression has too many states, or too many ways between them, to be looked at."""


class _Part(NamedTuple):
    """A part of the expression: the states it may begin and end with, and in how many ways it takes no
    character.
    """

    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    empty: int = 1


@dataclass(slots=True)
class Automaton:
    """``takes`` is the set of characters of each state, ``then`` the states that may follow it.

    ``loops`` are the outermost repetitions without a bound, each with its states, in their order. ``twice``
    are the pairs of states that may follow each other in more than one way. ``idle_choice``: something in a
    repetition takes no character in more than one way.
    """

    takes: list[int] = field(default_factory=list)
    then: list[dict[int, None]] = field(default_factory=list)
    first: tuple[int, ...] = ()
    loops: list[range] = field(default_factory=list)
    twice: set[tuple[int, int]] = field(default_factory=set)
    idle_choice: bool = False
    edges: int = 0

    def add(self, takes: int) -> int:
        self.takes.append(takes)
        self.then.append({})
        return len(self.takes) - 1

    def join(self, before: Sequence[int], after: Sequence[int]) -> None:
        self.edges += len(before) * len(after)
        if self.edges > _MAX_EDGES:
            raise TooLargeError
        for state in before:
            for following in after:
                if following in self.then[state]:
                    self.twice.add((state, following))
                self.then[state][following] = None


def tree_of(regex: str) -> Any:
    """As ``re`` has it: pairs of an operator and what it is about. Raises what ``re.compile`` does."""
    return _parser.parse(regex)


def automaton_of(tree: Any, nodes: Iterable[tuple[Any, Any]]) -> Automaton:
    """The automaton of some nodes of the tree, one after the other. Raises ``TooLargeError``."""
    builder = _Builder(tree.state.flags)
    builder.made.first = builder.sequence(nodes).first
    return builder.made


class _Builder:
    """``flags`` are those in force at where it is in the expression."""

    def __init__(self, flags: int) -> None:
        self.made = Automaton()
        self._flags = flags
        self._repeating = 0

    def sequence(self, nodes: Iterable[tuple[Any, Any]]) -> _Part:
        first, last, empty = _Part()
        for operator, argument in nodes:
            if operator in TAKING:
                part = _taking(self.made.add(self._takes(operator, argument)))
            else:
                part = self._part(operator, argument)
            self.made.join(last, part.first)
            if empty:
                first += part.first
            last = part.last + last if part.empty else part.last
            empty *= part.empty
        return _Part(first, last, empty)

    def _part(self, operator: Any, argument: Any) -> _Part:
        if operator in REPEATS:
            return self._repeated(*argument)
        match operator:
            case op.BRANCH:
                return self._either([self.sequence(each) for each in argument[1]])
            case op.SUBPATTERN:
                return self._group(*argument)
            case op.ATOMIC_GROUP:
                return self.sequence(argument)
            case op.ASSERT | op.ASSERT_NOT:
                return self._assertion(*argument)
            case op.AT | op.GROUPREF | op.GROUPREF_EXISTS:
                return _Part()
        raise NotImplementedError(f"an expression with {operator}")

    def _group(self, _number: int | None, added: int, removed: int, nodes: Any) -> _Part:
        outside, self._flags = self._flags, (self._flags | added) & ~removed
        try:
            return self.sequence(nodes)
        finally:
            self._flags = outside

    def _assertion(self, direction: int, nodes: Any) -> _Part:
        """A look ahead leads nowhere; a look back is of one length, and costs the same everywhere."""
        if direction < 0:
            return _Part()
        return _Part(first=self.sequence(nodes).first)

    def _repeated(self, least: int, most: int, nodes: Any) -> _Part:
        _, longest = nodes.getwidth()
        few = most <= _FEW and not self._repeating
        short = most <= MANY and most * longest <= _MAX_WRITTEN_OUT and _is_simple(nodes)
        if most > 1 and not few and not short:
            return self._loop(least, nodes)
        self._repeating += most > 1
        turns = [self.sequence(nodes) for _ in range(most)] or [_Part()]
        self._repeating -= most > 1
        for before, after in pairwise(turns):
            self.made.join(before.last, after.first)
        whole = _Part(
            first=turns[0].first,
            last=tuple(state for turn in turns[max(0, least - 1) :] for state in turn.last),
            empty=turns[0].empty,
        )
        return whole if least else self._either([_Part(), whole])

    def _loop(self, least: int, nodes: Any) -> _Part:
        begin = len(self.made.takes)
        self._repeating += 1
        turn = self.sequence(nodes)
        self._repeating -= 1
        self.made.join(turn.last, turn.first)
        inner = [loop for loop in self.made.loops if loop.start < begin]
        self.made.loops = [*inner, range(begin, len(self.made.takes))]
        return _Part(turn.first, turn.last, empty=int(least == 0))

    def _either(self, parts: Sequence[_Part]) -> _Part:
        empty = sum(part.empty for part in parts)
        self.made.idle_choice |= empty > 1 and self._repeating > 0
        return _Part(
            first=tuple(state for part in parts for state in part.first),
            last=tuple(state for part in parts for state in part.last),
            empty=empty,
        )

    # ------------------------------------------------------------------ characters

    def _takes(self, operator: Any, argument: Any) -> int:
        if operator is op.LITERAL:
            return self._characters(argument, argument)
        if operator is op.IN:
            return self._one_of(argument)
        if operator is op.NOT_LITERAL:
            return _but(self._characters(argument, argument))
        return ANY if self._flags & _DOTALL else ANY & ~(1 << ord("\n"))

    def _one_of(self, items: Sequence[tuple[Any, Any]]) -> int:
        found, negated = 0, False
        for operator, argument in items:
            match operator:
                case op.NEGATE:
                    negated = True
                case op.LITERAL:
                    found |= self._characters(argument, argument)
                case op.RANGE:
                    found |= self._characters(*argument)
                case op.CATEGORY:
                    found |= _CATEGORIES[argument]
        return _but(found) if negated else found

    def _characters(self, begin: int, end: int) -> int:
        """With both cases of letters where their case is ignored, and then also what is not ASCII: a K may be
        that of Kelvin."""
        found = (1 << min(end, 127) + 1) - (1 << min(begin, 128))
        if end > 127:
            found |= OTHER
        if self._flags & _IGNORECASE:
            cased = [character for character in _ASCII if found >> ord(character) & 1]
            found |= sum({1 << ord(character.swapcase()) for character in cased}) | OTHER
        return found


def _taking(state: int) -> _Part:
    return _Part((state,), (state,), 0)


def _is_simple(nodes: Iterable[tuple[Any, Any]]) -> bool:
    """Whether it takes so many characters and no others, in one way."""
    for operator, argument in nodes:
        if operator in REPEATS:
            least, most, body = argument
            if least != most or not _is_simple(body):
                return False
        elif operator is op.SUBPATTERN:
            if not _is_simple(argument[-1]):
                return False
        elif operator not in TAKING and operator is not op.AT:
            return False
    return True


def _but(characters: int) -> int:
    """All others. One that is not ASCII may be another than the one that is."""
    return (ANY & ~characters) | OTHER
