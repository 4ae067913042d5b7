"""Whether some line is of two languages at once: what the kernel can say, and what a pattern matches.

Both become automata over characters, and the search walks through them side by side. So "no name forges
this pattern" is shown of every name there is, not of some that were tried. Lookarounds and ``\\b`` of a
pattern are taken to hold: that may find a line that it does not match after all, and never misses one.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from re import _constants as op  # type: ignore[attr-defined]  # typeshed knows neither of the two
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final

BEYOND: Final = 256
"""Stands for every character that has no place among the first 256."""
EVERY: Final = (1 << (BEYOND + 1)) - 1
NEWLINE: Final = 1 << ord("\n")
_PREFERRED: Final = "xabcdefghijklmnopqrstuvwyz0123456789 :.,()[]'/-_#!=<>"
_UNROLLED: Final = 64
_TAKING: Final = (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN)


@dataclass(slots=True)
class Automaton:
    """States are numbers. ``steps``: by characters (a set as bits); ``free``: without one; ``at_end``: only
    where the line ends."""

    steps: list[list[tuple[int, int]]] = field(default_factory=list)
    free: list[list[int]] = field(default_factory=list)
    at_end: list[list[int]] = field(default_factory=list)
    _reached: dict[tuple[int, bool], frozenset[int]] = field(default_factory=dict)

    def state(self) -> int:
        self.steps.append([])
        self.free.append([])
        self.at_end.append([])
        return len(self.steps) - 1

    def reached(self, state: int, *, line_may_end: bool) -> frozenset[int]:
        """What is reached from there without a character. Worked out once: nothing is added any more."""
        known = self._reached.get((state, line_may_end))
        if known is None:
            known = self._reached[state, line_may_end] = self._closure(state, line_may_end=line_may_end)
        return known

    def _closure(self, state: int, *, line_may_end: bool) -> frozenset[int]:
        found, waiting = {state}, [state]
        while waiting:
            here = waiting.pop()
            for there in (*self.free[here], *(self.at_end[here] if line_may_end else ())):
                if there not in found:
                    found.add(there)
                    waiting.append(there)
        return frozenset(found)

    def repeat(self, chars: int, least: int, most: int | None, begin: int) -> int:
        """Adds one of a set so many times, ``most`` None for ever; the state behind it."""
        here = begin
        for _ in range(least):
            here = self._step(here, chars)
        if most is None or most - least > _UNROLLED:
            self.steps[here].append((chars, here))
            return here
        end = self.state()
        self.free[here].append(end)
        for _ in range(most - least):
            here = self._step(here, chars)
            self.free[here].append(end)
        return end

    def _step(self, here: int, chars: int) -> int:
        there = self.state()
        self.steps[here].append((chars, there))
        return there


@dataclass(frozen=True, slots=True)
class Language:
    automaton: Automaton
    begin: int
    end: int


def of_regex(regex: str) -> Language:
    """What begins as ``re.match`` matches; where it ends, any text may follow."""
    automaton = Automaton()
    begin = automaton.state()
    tree: Any = parser.parse(regex)
    assert not tree.state.flags & re.IGNORECASE, "no pattern so far"
    dotall = bool(tree.state.flags & re.DOTALL)
    return Language(automaton, begin, _sequence(automaton, tree, begin, dotall=dotall))


def anything() -> Language:
    """Every line there is."""
    automaton = Automaton()
    begin = automaton.state()
    return Language(automaton, begin, automaton.repeat(EVERY, 0, None, begin))


def common_line(said: Language, matched: Language) -> str | None:
    """A line that is said whole and begins as is matched, as short as can be; None where there is none."""
    start = (said.begin, matched.begin)
    came: dict[tuple[int, int], tuple[tuple[int, int], int] | None] = {start: None}
    waiting = deque([start])
    while waiting:
        place = waiting.popleft()
        here_said, here_matched = place
        froms = said.automaton.reached(here_said, line_may_end=True)
        may_end = said.end in froms or any(
            chars & NEWLINE and said.end in said.automaton.reached(there, line_may_end=True)
            for state in froms
            for chars, there in said.automaton.steps[state]
        )
        matching = matched.automaton.reached(here_matched, line_may_end=may_end)
        if matched.end in matching:
            return _way(came, place)
        for state in froms:
            for chars, there in said.automaton.steps[state]:
                for other in matching:
                    for wanted, beyond in matched.automaton.steps[other]:
                        if (both := chars & wanted) and (there, beyond) not in came:
                            came[there, beyond] = (place, both)
                            waiting.append((there, beyond))
    return None


def _way(came: dict[tuple[int, int], tuple[tuple[int, int], int] | None], place: tuple[int, int]) -> str:
    text = []
    while (step := came[place]) is not None:
        place, chars = step
        text.append(_one_of(chars))
    return "".join(reversed(text))


def _one_of(chars: int) -> str:
    for char in _PREFERRED:
        if chars >> ord(char) & 1:
            return char
    return "\u2713" if chars >> BEYOND else chr((chars & -chars).bit_length() - 1)


# --------------------------------------------------------------------------- from a regex


def _sequence(automaton: Automaton, nodes: Iterable[Any], begin: int, *, dotall: bool) -> int:
    here = begin
    for kind, argument in nodes:
        here = _piece(automaton, kind, argument, here, dotall=dotall)
    return here


def _piece(automaton: Automaton, kind: Any, argument: Any, begin: int, *, dotall: bool) -> int:
    if kind in _TAKING:
        return automaton.repeat(chars_of(kind, argument, dotall=dotall), 1, 1, begin)
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        least, most, inner = argument
        return _repeated(automaton, least, most, inner, begin, dotall=dotall)
    if kind is op.SUBPATTERN:
        _, added, removed, inner = argument
        assert not added & re.IGNORECASE, "no pattern so far"
        dotall = (dotall or bool(added & re.DOTALL)) and not removed & re.DOTALL
        return _sequence(automaton, inner, begin, dotall=dotall)
    if kind is op.ATOMIC_GROUP:
        return _sequence(automaton, argument, begin, dotall=dotall)
    if kind is op.BRANCH:
        end = automaton.state()
        for way in argument[1]:
            automaton.free[_sequence(automaton, way, begin, dotall=dotall)].append(end)
        return end
    if kind is op.AT and argument in (op.AT_END, op.AT_END_STRING):
        end = automaton.state()
        automaton.at_end[begin].append(end)
        return end
    if kind in (op.AT, op.ASSERT, op.ASSERT_NOT):
        return begin
    raise NotImplementedError(f"{kind} in a pattern")


def _repeated(automaton: Automaton, least: int, most: int, inner: Any, begin: int, *, dotall: bool) -> int:
    unbounded = most is op.MAXREPEAT or most == op.MAXREPEAT
    if len(inner) == 1 and inner[0][0] in _TAKING:
        return automaton.repeat(chars_of(*inner[0], dotall=dotall), least, None if unbounded else most, begin)
    here = begin
    for _ in range(least):
        here = _sequence(automaton, inner, here, dotall=dotall)
    end = automaton.state()
    automaton.free[here].append(end)
    if unbounded:
        loop = automaton.state()
        automaton.free[here].append(loop)
        after = _sequence(automaton, inner, loop, dotall=dotall)
        automaton.free[after] += [loop, end]
        return end
    for _ in range(most - least):
        here = _sequence(automaton, inner, here, dotall=dotall)
        automaton.free[here].append(end)
    return end


def chars_of(kind: Any, argument: Any, *, dotall: bool = False) -> int:
    """The characters that one piece of a regex takes, as bits."""
    if kind is op.LITERAL:
        return 1 << int(min(argument, BEYOND))
    if kind is op.NOT_LITERAL:
        return EVERY & ~(1 << argument) if argument < BEYOND else EVERY
    if kind is op.ANY:
        return EVERY if dotall else EVERY & ~NEWLINE
    negated = argument[0][0] is op.NEGATE
    held = 0
    for member, value in argument[negated:]:
        held |= _member(member, value)
    return EVERY & ~held if negated else held


def _member(member: Any, value: Any) -> int:
    if member is op.LITERAL:
        return 1 << int(min(value, BEYOND))
    if member is op.RANGE:
        low, high = value
        return sum(1 << code for code in range(low, min(high, BEYOND) + 1))
    regex = re.compile(_CLASSES[value])  # and of those beyond there are some of each
    return sum(1 << code for code in range(BEYOND) if regex.match(chr(code))) | 1 << BEYOND


_CLASSES: Final[dict[Any, str]] = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """``NAME {program}: x`` as pairs of literal text and the word in braces behind it, "" behind the last."""
    at = 0
    for found in re.finditer(r"\{(\w+)\}", text):
        yield text[at : found.start()], found[1]
        at = found.end()
    yield text[at:], ""
