"""Regular expressions by which a hostile line could keep the kernel log from being read.

``re`` tries one way after another in which an expression may read a line. Of most expressions there are few.
Of some there are so many that a line of a hundred characters takes hours, and nothing can interrupt it: such
are refused here, by what they look like or by how many ways there are (A. Weber, H. Seidl, On the degree of
ambiguity of finite automata, 1991). What is refused may be harmless where more of the expression makes up for
it; what is not refused takes at most about n * n steps from where a match may begin, for n characters.
"""

from collections.abc import Iterable, Iterator
from itertools import product
from re import _constants as op  # type: ignore[attr-defined]
from typing import Any, Final

from nodeagent.tables.patterns.automaton import (
    MANY,
    REPEATS,
    TAKING,
    Automaton,
    TooLargeError,
    automaton_of,
    tree_of,
)

_SO: Final = "a hostile line could keep the kernel log from being read"
REFERS: Final = f"refers back to what a group matched, so {_SO}; write out what may stand there"
NESTED: Final = f'repeats what repeats itself, as "(a+)+" does, so {_SO}; keep one of the two repetitions'
EMPTY: Final = f'repeats what may be empty, as "(a?)+" does, so {_SO}; let each turn take a character'
EXPONENTIAL: Final = (
    f'repeats what can be read in two ways, as "(a|aa)+" does, so {_SO}; let alternatives begin differently,'
    " and end each turn with a character that nothing else in it takes"
)
CUBIC: Final = (
    f'has three repetitions that can take the same text, as ".*a.*b.*c" has, so {_SO}; let one end where the'
    ' next part begins, as "[^:]*:" does, or leave one out'
)

TOO_LARGE: Final = f"is too long and branched to be judged, and {_SO}; split it into several patterns"

_MAX_SEEN: Final = 20_000


def objections(regex: str) -> Iterator[str]:
    """What is wrong with it, if anything. It must compile."""
    tree = tree_of(regex)
    if found := dict.fromkeys(_of_form(tree, repeated=False)):
        yield from found
        return
    try:
        parts = [automaton_of(tree, part) for part in must_part(tree)]
        if any(made.idle_choice or any(_is_ambiguous(made, loop) for loop in made.loops) for made in parts):
            yield EXPONENTIAL
        elif any(_degree(made) > 1 for made in parts):
            yield CUBIC
    except TooLargeError:
        yield TOO_LARGE


def must_part(tree: Any) -> tuple[list[Any], list[Any]]:
    """What must be there, and what may follow it: a match that has come so far needs no second try."""
    nodes = list(tree)
    end = next((at for at in range(len(nodes), 0, -1) if not _may_be_left_out(*nodes[at - 1])), 0)
    return nodes[:end], nodes[end:]


# --------------------------------------------------------------------------- by its form


def _of_form(nodes: Iterable[tuple[Any, Any]], *, repeated: bool) -> Iterator[str]:
    """``repeated``: what is looked at stands in a long repetition."""
    for operator, argument in nodes:
        if operator in TAKING:
            continue
        if operator in (op.GROUPREF, op.GROUPREF_EXISTS):
            yield REFERS
        elif operator in REPEATS:
            _, most, body = argument
            is_long = most > MANY
            if is_long and repeated:
                yield NESTED
            if most > 1 and body.getwidth()[0] == 0:
                yield EMPTY
            yield from _of_form(body, repeated=repeated or is_long)
        else:
            for inner in _within(operator, argument):
                yield from _of_form(inner, repeated=repeated)


def _may_be_left_out(operator: Any, argument: Any) -> bool:
    """Whether it fits everywhere."""
    if operator is op.SUBPATTERN:
        return all(_may_be_left_out(*node) for node in argument[-1])
    return operator in REPEATS and argument[0] == 0


def _within(operator: Any, argument: Any) -> Iterator[Any]:
    match operator:
        case op.BRANCH:
            return iter(argument[1])
        case op.SUBPATTERN | op.ASSERT | op.ASSERT_NOT:
            return iter((argument[-1],))
        case op.ATOMIC_GROUP:
            return iter((argument,))
    return iter(())


# --------------------------------------------------------------------------- by its ways


def _is_ambiguous(made: Automaton, loop: range) -> bool:
    """Whether a text can lead from a state of the loop to itself in two ways: the ways double with each turn.

    Two ways part at a state, and meet at one; between them they are at two states at a time.
    """
    if any(state in loop and following in loop for state, following in made.twice):
        return True
    parted = {pair for state in loop for pair in product(made.then[state], repeat=2) if pair[0] != pair[1]}
    seen, open_pairs = set[tuple[int, ...]](), list[tuple[int, ...]](parted)
    while open_pairs:
        pair = open_pairs.pop()
        if pair in seen or not all(state in loop for state in pair) or not _take_the_same(made, pair):
            continue
        if pair[0] == pair[1]:
            return True
        _note(seen, pair)
        open_pairs += product(*(made.then[state] for state in pair))
    return False


def _degree(made: Automaton) -> int:
    """The most pairs of loops, one behind the other, between which a text can be cut anywhere: with each of
    them the number of ways is multiplied by that of the characters.
    """
    if len(made.loops) < 3:
        return len(made.loops) - 1
    reached = [_reached(made, loop) for loop in made.loops]
    degree = [0] * len(made.loops)
    for later, loop in enumerate(made.loops):
        for earlier in range(later):
            if loop.start in reached[earlier]:
                shared = _share_a_text(made, made.loops[earlier], loop)
                degree[later] = max(degree[later], degree[earlier] + shared)
    return max(degree)


def _reached(made: Automaton, loop: range) -> set[int]:
    found, open_states = set[int](), [*loop]
    while open_states:
        state = open_states.pop()
        if state not in found:
            found.add(state)
            open_states += made.then[state]
    return found


def _share_a_text(made: Automaton, earlier: range, later: range) -> bool:
    """Whether a text leads from a state of the earlier loop to itself, from one of the later to itself, and
    from the one to the other.
    """
    open_ways = [(begin, end, begin, begin, end) for begin, end in product(earlier, later)]
    seen = set[tuple[int, ...]]()
    while open_ways:
        begin, end, *places = open_ways.pop()
        for one, between, other in product(*(made.then[state] for state in places)):
            way = (begin, end, one, between, other)
            inside = one in earlier and other in later
            if inside and way not in seen and _take_the_same(made, way[2:]):
                if (one, between, other) == (begin, end, end):
                    return True
                _note(seen, way)
                open_ways.append(way)
    return False


def _note(seen: set[tuple[int, ...]], states: tuple[int, ...]) -> None:
    seen.add(states)
    if len(seen) > _MAX_SEEN:
        raise TooLargeError


def _take_the_same(made: Automaton, states: Iterable[int]) -> bool:
    """Whether there is a character that each of them takes."""
    shared = -1
    for state in states:
        shared &= made.takes[state]
    return shared != 0
