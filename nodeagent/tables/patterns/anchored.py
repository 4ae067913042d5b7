"""Whether a kernel-log pattern can only match where a driver's or the kernel's own message begins.

The kernel quotes names that any user chooses: that of a program (at most 15 bytes, ``TASK_COMM_LEN``) at
the very beginning of ``NAME[123]: segfault at ...``, files and control groups further on in such a line. A
pattern that such a name can satisfy lets any user blame a chip. So it has to begin with ``^`` in each
branch, and with more fixed characters than a name has before it lets anything stand.

Works on the parsed regex, never on its text. It judges form alone: whether the words are those of a driver,
whoever writes the pattern has to know.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from re import _constants as op  # type: ignore[attr-defined]  # typeshed does not know it
from typing import Any, Final

from nodeagent.tables.patterns.automaton import REPEATS, TAKING, tree_of

NAME_CHARS: Final = 15
"""A program's name (include/linux/sched.h) and an interface's (include/uapi/linux/if.h) have no more."""
SURE_CHARS: Final = NAME_CHARS + 2
"""More than a name with the character that the kernel puts behind it, such as ``[`` or a blank."""
FIRST_WORDS: Final = 4
"""So many fixed characters at the beginning are words, behind which the kernel may quote a short name."""
FEW_CHARS: Final = 3
LONGEST_WORD: Final = 64

NOT_ANCHORED: Final = (
    "may match in the middle of a line, where the kernel quotes names that any user chooses: it must begin"
    " with ^ in every branch, without (?m), followed by the words with which the message begins"
)
_ANYTHING_FIRST: Final = (
    "lets anything stand between ^ and the first fixed words, where a name that any user chooses can stand;"
    " begin with the words of the message"
)
_LONG_WORD_FIRST: Final = (
    f"lets a word of any length stand before the first fixed words; allow {LONGEST_WORD} characters at most"
)
_AROUND_A_NAME: Final = "[](){}<>:/'\"`"
"""Punctuation by which the kernel continues behind a name, or sets a later one apart."""

_CATEGORY: Final[Mapping[Any, Callable[[str], bool]]] = {
    op.CATEGORY_DIGIT: str.isdigit,
    op.CATEGORY_NOT_DIGIT: lambda char: not char.isdigit(),
    op.CATEGORY_SPACE: str.isspace,
    op.CATEGORY_NOT_SPACE: lambda char: not char.isspace(),
    op.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
    op.CATEGORY_NOT_WORD: lambda char: not (char.isalnum() or char == "_"),
}

Node = tuple[Any, Any]
"""What the parser makes of one piece of a regex: an opcode and its arguments."""


def objection(regex: str) -> str | None:
    """Why a regex that compiles is refused, and what would be right; None where it is anchored."""
    tree = tree_of(regex)
    try:
        if tree.state.flags & re.MULTILINE or not _begins(tree):
            return NOT_ANCHORED
        fixed = _Walk().sequence(tree, 0, more=False)
    except _Void as void:
        return str(void)
    except RecursionError:
        return "nests groups too deeply to be checked"
    if fixed < SURE_CHARS and not _ends(tree):
        return (
            f"asks for {fixed} fixed characters, and the kernel begins some lines with the name of a program,"
            f" which any user chooses, of up to {NAME_CHARS}: ask for {SURE_CHARS} or more, or end it with $"
            " where the message ends"
        )
    return None


class _Void(Exception):
    """What stands behind ``^`` takes its worth; the text says why."""


class _Walk:
    """Counts the fixed characters that a line needs, along the way that needs the fewest.

    ``more``: whether the regex asks for anything behind what is looked at. Raises ``_Void``.
    """

    def __init__(self) -> None:
        self._loose = 0

    def sequence(self, nodes: Iterable[Node], fixed: int, *, more: bool) -> int:
        pieces = list(nodes)
        last_required = max((place for place, node in enumerate(pieces) if _least(node)), default=0)
        for place, node in enumerate(pieces):
            fixed = self._piece(node, fixed, more=more or place < last_required)
        return fixed

    def _piece(self, node: Node, fixed: int, *, more: bool) -> int:
        kind, argument = node
        if kind in TAKING:
            return self._set(node, 1, 1, fixed, more=more)
        if kind in REPEATS:
            least: int
            least, most, inner = argument
            if len(inner) == 1 and inner[0][0] in TAKING:
                return self._set(inner[0], least, most, fixed, more=more)
            if most > 1 and any(_admits(one, " ") for one in _sets_in(inner)):
                self._anything(inner.getwidth()[1] * most, fixed, more=more)
            return fixed + least * (self.sequence(inner, fixed, more=more) - fixed)
        ways = [self.sequence(way, fixed, more=more) for way in _ways(node)]
        return min(ways, default=fixed)

    def _set(self, node: Node, least: int, most: int, fixed: int, *, more: bool) -> int:
        """One character, or one of a set, so many times."""
        is_fixed = _is_fixed(node)
        if not is_fixed and _admits(node, " ") and (fixed < FIRST_WORDS or _runs_on(node)):
            self._anything(most, fixed, more=more)
            return fixed
        if most > LONGEST_WORD and fixed < FIRST_WORDS and more:
            raise _Void(_LONG_WORD_FIRST)
        return fixed + least if is_fixed or not _runs_on(node) else fixed

    def _anything(self, most: int, fixed: int, *, more: bool) -> None:
        """So many of any characters: harmless only where no name that begins the line reaches that far."""
        if fixed < FIRST_WORDS:
            self._loose += most
            if self._loose > FEW_CHARS:
                raise _Void(_ANYTHING_FIRST)
        elif most > NAME_CHARS and fixed < SURE_CHARS and more:
            raise _Void(
                f"lets anything stand behind {fixed} fixed characters: a program's name, which any user"
                f" chooses, has up to {NAME_CHARS}, and the name of a file further on can say the rest; ask"
                f" for {SURE_CHARS} or more first, or allow only what the message has there"
            )


def _ways(node: Node) -> tuple[Any, ...]:
    """The sequences of which a group or a branch lets one through; of anything else none."""
    kind, argument = node
    if kind is op.SUBPATTERN:
        return (argument[-1],)
    if kind is op.ATOMIC_GROUP:
        return (argument,)
    if kind is op.BRANCH:
        return tuple(argument[1])
    if kind is op.GROUPREF_EXISTS:
        return tuple(way or () for way in argument[1:])
    return ()


def _begins(nodes: Any) -> bool:
    """Whether each way through them begins with ``^``."""
    if not len(nodes):
        return False
    kind, argument = nodes[0]
    if kind is op.AT:
        return argument in (op.AT_BEGINNING, op.AT_BEGINNING_STRING)
    if kind is op.SUBPATTERN and argument[1] & re.MULTILINE:
        return False
    ways = _ways(nodes[0])
    return bool(ways) and all(_begins(way) for way in ways)


def _ends(nodes: Any) -> bool:
    """Whether each way through them ends with ``$``."""
    if not len(nodes):
        return False
    kind, argument = nodes[-1]
    if kind is op.AT:
        return argument in (op.AT_END, op.AT_END_STRING)
    ways = _ways(nodes[-1])
    return bool(ways) and all(_ends(way) for way in ways)


def _least(node: Node) -> int:
    """The fewest characters that it takes up."""
    kind, argument = node
    if kind in TAKING:
        return 1
    if kind in REPEATS:
        least, _, inner = argument
        return int(least * inner.getwidth()[0])
    return min((sum(map(_least, way)) for way in _ways(node)), default=0)


def _sets_in(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        kind, argument = node
        if kind in TAKING:
            yield node
        for inner in (argument[2],) if kind in REPEATS else _ways(node):
            yield from _sets_in(inner)


def _is_fixed(node: Node) -> bool:
    """Whether it is one character, or one of a few."""
    kind, argument = node
    if kind is op.IN:
        return len(argument) <= FEW_CHARS and all(one is op.LITERAL for one, _ in argument)
    return kind is op.LITERAL


def _runs_on(node: Node) -> bool:
    """Whether it admits what the kernel writes around names: letters, digits and blanks alone do not."""
    return any(_admits(node, char) for char in _AROUND_A_NAME)


def _admits(node: Node, char: str) -> bool:
    kind, argument = node
    if kind is op.LITERAL:
        return bool(argument == ord(char))
    if kind is op.NOT_LITERAL:
        return bool(argument != ord(char))
    if kind is op.ANY:
        return True
    negated = argument[0][0] is op.NEGATE
    return any(_holds(one, char) for one in argument[negated:]) is not negated


def _holds(member: Node, char: str) -> bool:
    kind, argument = member
    if kind is op.LITERAL:
        return bool(argument == ord(char))
    if kind is op.RANGE:
        return bool(argument[0] <= ord(char) <= argument[1])
    return _CATEGORY[argument](char)
