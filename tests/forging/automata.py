"""Whether some line is of two languages at once: what the kernel can say, and what a pattern matches.

Both become automata over characters, and the search walks through them side by side. So "no name forges
this pattern" is shown of every name there is, not of some that were tried. ``\\b`` and ``unless`` of a
pattern are taken to let a line pass: that may find a line that it does not match after all, and never misses
one.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from nodeagent.tables.patterns.syntax import (
    ANY,
    OTHER,
    Characters,
    Group,
    Node,
    Repeat,
    SyntaxPosition,
    parse,
)

EVERY: Final = ANY
_PREFERRED: Final = "xabcdefghijklmnopqrstuvwyz0123456789 :.,()[]'/-_#!=<>"
_UNROLLED: Final = 64


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
    """What begins as a match at the beginning does; where it ends, any text may follow."""
    automaton = Automaton()
    begin = automaton.state()
    return Language(automaton, begin, _added(automaton, parse(regex), begin))


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
        matching = matched.automaton.reached(here_matched, line_may_end=said.end in froms)
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
    return "\u2713" if chars & OTHER else chr((chars & -chars).bit_length() - 1)


# --------------------------------------------------------------------------- from a regex


def _sequence(automaton: Automaton, nodes: Iterable[Node], begin: int) -> int:
    here = begin
    for node in nodes:
        here = _added(automaton, node, here)
    return here


def _added(automaton: Automaton, node: Node, begin: int) -> int:
    """The state behind it."""
    match node:
        case Characters(members):
            return automaton.repeat(members, 1, 1, begin)
        case Repeat(Characters(members), least, most):
            return automaton.repeat(members, least, most, begin)
        case Repeat(body, least, most):
            return _repeated(automaton, body, least, most, begin)
        case Group(ways):
            end = automaton.state()
            for way in ways:
                automaton.free[_sequence(automaton, way, begin)].append(end)
            return end
        case SyntaxPosition("end"):
            end = automaton.state()
            automaton.at_end[begin].append(end)
            return end
        case SyntaxPosition():
            return begin


def _repeated(automaton: Automaton, body: Node, least: int, most: int | None, begin: int) -> int:
    here = begin
    for _ in range(least):
        here = _added(automaton, body, here)
    end = automaton.state()
    automaton.free[here].append(end)
    if most is None:
        loop = automaton.state()
        automaton.free[here].append(loop)
        after = _added(automaton, body, loop)
        automaton.free[after] += [loop, end]
        return end
    for _ in range(most - least):
        here = _added(automaton, body, here)
        automaton.free[here].append(end)
    return end


def chars_of(regex: str) -> int:
    """The characters that an expression for one takes, as bits."""
    ((node,),) = parse(regex).ways
    assert isinstance(node, Characters)
    return node.members


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """``NAME {program}: x`` as pairs of literal text and the word in braces behind it, "" behind the last."""
    at = 0
    for found in re.finditer(r"\{(\w+)\}", text):
        yield text[at : found.start()], found[1]
        at = found.end()
    yield text[at:], ""
