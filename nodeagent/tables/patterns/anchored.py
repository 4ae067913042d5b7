"""Whether a kernel-log pattern can only match where a driver's or the kernel's own message begins.

The kernel quotes names that any user chooses: that of a program (at most 15 bytes, ``TASK_COMM_LEN``) at
the very beginning of ``NAME[123]: segfault at ...``, files and control groups further on in such a line. A
pattern that such a name can satisfy lets any user blame a chip. So it has to begin with ``^`` in each
branch, and with more fixed characters than a name has, before it allows any text.

Works on the parsed regex, never on its text. It judges form alone: that the text is a driver's is left to
the author of the pattern.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final

from nodeagent.tables.patterns.syntax import Characters, Group, Node, Repeat, SyntaxPosition

NAME_CHARS: Final = 15
"""A program's name (include/linux/sched.h) and an interface's (include/uapi/linux/if.h) have no more."""
SURE_CHARS: Final = NAME_CHARS + 2
"""More than a name with the character that the kernel puts after it, such as ``[`` or a blank."""
FIRST_WORDS: Final = 4
"""So many fixed characters at the beginning are fixed text, after which the kernel may quote a short name."""
FEW_CHARS: Final = 3
LONGEST_WORD: Final = 64

NOT_ANCHORED: Final = (
    "may match in the middle of a line, where the kernel quotes names that any user chooses: it must begin"
    " with ^ in every branch, without (?m), followed by the text with which the message begins"
)
_ANYTHING_FIRST: Final = (
    "allows any text between ^ and the first fixed text, where a name that any user chooses can be;"
    " begin with the fixed text of the message"
)
_LONG_WORD_FIRST: Final = (
    f"allows a name of any length before the first fixed text; allow {LONGEST_WORD} characters at most"
)
_AROUND_A_NAME: Final = "[](){}<>:/'\"`"
"""Punctuation by which the kernel continues behind a name, or sets a later one apart."""


def objection(tree: Group) -> str | None:
    """Why an expression is refused, and what would be right; None where it is anchored."""
    if not begins(tree):
        return NOT_ANCHORED
    try:
        fixed = _Walk().sequence((tree,), 0, more=False)
    except _Void as void:
        return str(void)
    if fixed < SURE_CHARS and not _ends(tree):
        return (
            f"asks for {fixed} fixed characters, and the kernel begins some lines with the name of a program,"
            f" which any user chooses, of up to {NAME_CHARS}: ask for {SURE_CHARS} or more, or end it with $"
            " where the message ends"
        )
    return None


class _Void(Exception):
    """What follows ``^`` makes it useless; the text is the reason."""


class _Walk:
    """Counts the fixed characters that a line needs, along the way that needs the fewest.

    ``more``: whether the regex asks for anything behind what is looked at. Raises ``_Void``.
    """

    def __init__(self) -> None:
        self._loose = 0.0

    def sequence(self, nodes: Sequence[Node], fixed: int, *, more: bool) -> int:
        last_required = max((place for place, node in enumerate(nodes) if _least(node)), default=0)
        for place, node in enumerate(nodes):
            fixed = self._piece(node, fixed, more=more or place < last_required)
        return fixed

    def _piece(self, node: Node, fixed: int, *, more: bool) -> int:
        match node:
            case Characters():
                return self._set(node, 1, 1, fixed, more=more)
            case Repeat(Characters() as body, least, most):
                return self._set(body, least, math.inf if most is None else most, fixed, more=more)
            case Repeat(body, least, most):
                if most != 1 and any(_admits(each, " ") for each in _sets_in(body)):
                    self._anything(_most(node), fixed, more=more)
                return fixed + least * (self._piece(body, fixed, more=more) - fixed)
            case Group(ways):
                return min(self.sequence(way, fixed, more=more) for way in ways)
        return fixed

    def _set(self, node: Characters, least: int, most: float, fixed: int, *, more: bool) -> int:
        """One character, or one of a set, so many times."""
        is_fixed = node.members.bit_count() <= FEW_CHARS
        if not is_fixed and _admits(node, " ") and (fixed < FIRST_WORDS or _runs_on(node)):
            self._anything(most, fixed, more=more)
            return fixed
        if most > LONGEST_WORD and fixed < FIRST_WORDS and more:
            raise _Void(_LONG_WORD_FIRST)
        return fixed + least if is_fixed or not _runs_on(node) else fixed

    def _anything(self, most: float, fixed: int, *, more: bool) -> None:
        """So many of any characters: harmless only where no name that begins the line reaches that far."""
        if fixed < FIRST_WORDS:
            self._loose += most
            if self._loose > FEW_CHARS:
                raise _Void(_ANYTHING_FIRST)
        elif most > NAME_CHARS and fixed < SURE_CHARS and more:
            raise _Void(
                f"allows any text after {fixed} fixed characters: a program's name, which any user"
                f" chooses, has up to {NAME_CHARS}, and the name of a file further on can be the rest; ask"
                f" for {SURE_CHARS} or more first, or allow only what the message has there"
            )


def begins(node: Node) -> bool:
    """Whether each way through it begins with ``^``."""
    match node:
        case SyntaxPosition(at):
            return at == "begin"
        case Group(ways):
            return all(way and begins(way[0]) for way in ways)
    return False


def _ends(node: Node) -> bool:
    """Whether each way through it ends with ``$``."""
    match node:
        case SyntaxPosition(at):
            return at == "end"
        case Group(ways):
            return all(way and _ends(way[-1]) for way in ways)
    return False


def _least(node: Node) -> int:
    """The fewest characters that it takes up."""
    match node:
        case Characters():
            return 1
        case Repeat(body, least, _):
            return least * _least(body)
        case Group(ways):
            return min(sum(map(_least, way)) for way in ways)
    return 0


def _most(node: Node) -> float:
    """The most characters that it takes up."""
    match node:
        case Characters():
            return 1
        case Repeat(body, _, most):
            return _most(body) * most if most is not None else math.inf
        case Group(ways):
            return max(sum(map(_most, way)) for way in ways)
    return 0


def _sets_in(node: Node) -> Iterator[Characters]:
    match node:
        case Characters():
            yield node
        case Repeat(body, _, _):
            yield from _sets_in(body)
        case Group(ways):
            for way in ways:
                for each in way:
                    yield from _sets_in(each)


def _runs_on(node: Characters) -> bool:
    """Whether it admits what the kernel writes around names: letters, digits and blanks alone do not."""
    return any(_admits(node, char) for char in _AROUND_A_NAME)


def _admits(node: Characters, char: str) -> bool:
    return bool(node.members >> ord(char) & 1)
