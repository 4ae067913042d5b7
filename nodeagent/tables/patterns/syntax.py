r"""What a regular expression in RE2's syntax is made of, as far as the check of its beginning has to know.

The syntax is that of https://github.com/google/re2/wiki/Syntax. RE2 itself decides whether an expression is
one: ``parse`` is called with expressions that RE2 has compiled, and matches nothing. It refuses what no
pattern needs (``\pN``, ``\Q...\E``, ``\C``, flags but ``i`` and ``s``), and ``{,3}``, which Python's ``re``
reads otherwise.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

OTHER: Final = 1 << 128
"""A set of characters is a number with a bit for each ASCII character, and this one for all others."""

ANY: Final = (OTHER << 1) - 1
MAX_DEPTH: Final = 50

_NEWLINE: Final = 1 << ord("\n")
_FOLDED_BEYOND_ASCII: Final = frozenset("kKsS")
"""Ignoring case they are equal to the Kelvin sign and to the long s."""


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a set."""

    members: int


@dataclass(frozen=True, slots=True)
class SyntaxPosition:
    """Where a match may be, without a character: "begin" and "end" of the text, or at a word's "boundary"."""

    at: Literal["begin", "end", "boundary"]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``most`` None: without a bound."""

    body: "Node"
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Group:
    """One of these sequences."""

    ways: "tuple[tuple[Node, ...], ...]"


Node = Characters | SyntaxPosition | Repeat | Group


class UnsupportedError(ValueError):
    """The expression has something that no pattern may have; the text is what to write in its place."""


def parse(regex: str) -> Group:
    """The whole of an expression that RE2 compiles. Raises UnsupportedError."""
    return _Parser(regex).whole()


def _set_of(holds: Callable[[str], bool]) -> int:
    return sum(1 << code for code in range(128) if holds(chr(code)))


_DIGITS: Final = _set_of(str.isdigit)
_WORD: Final = _set_of(lambda char: char.isalnum() or char == "_")
_SPACE: Final = _set_of(lambda char: char in "\t\n\f\r ")
_CLASSES: Final[Mapping[str, int]] = {
    "d": _DIGITS,
    "D": ANY & ~_DIGITS,
    "w": _WORD,
    "W": ANY & ~_WORD,
    "s": _SPACE,
    "S": ANY & ~_SPACE,
}
_POSIX: Final[Mapping[str, int]] = {
    "alnum": _set_of(str.isalnum),
    "alpha": _set_of(str.isalpha),
    "ascii": ANY & ~OTHER,
    "blank": _set_of(lambda char: char in "\t "),
    "cntrl": _set_of(lambda char: not char.isprintable()),
    "digit": _DIGITS,
    "graph": _set_of(lambda char: char.isprintable() and char != " "),
    "lower": _set_of(str.islower),
    "print": _set_of(str.isprintable),
    "punct": _set_of(lambda char: char.isprintable() and not char.isalnum() and char != " "),
    "space": _SPACE | 1 << ord("\v"),
    "upper": _set_of(str.isupper),
    "word": _WORD,
    "xdigit": _set_of(lambda char: char in "0123456789abcdefABCDEF"),
}
_CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_POSITIONS: Final[Mapping[str, SyntaxPosition]] = {
    r"\A": SyntaxPosition("begin"),
    r"\z": SyntaxPosition("end"),
    r"\b": SyntaxPosition("boundary"),
    r"\B": SyntaxPosition("boundary"),
}
_FLAGS: Final = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_NAMED: Final = re.compile(r"\(\?P?<([^>]*)>")
_COUNT: Final = re.compile(r"\{(\d+)(,?)(\d*)\}")
_UP_TO: Final = re.compile(r"\{,\d+\}")
_NUMBER: Final = re.compile(r"\\(?:x\{([0-9a-fA-F]+)\}|x([0-9a-fA-F]{2})|([0-7]{1,3}))")
_POSIX_CLASS: Final = re.compile(r"\[:(\^?)(\w+):\]")


class _Parser:
    """``_ignores_case`` and ``_dot_all``: the flags in force at where it is in the expression."""

    def __init__(self, regex: str) -> None:
        self._regex = regex
        self._at = 0
        self._depth = 0
        self._ignores_case = False
        self._dot_all = False
        self._names = set[str]()

    def whole(self) -> Group:
        found = self._ways()
        if self._at < len(self._regex):
            raise UnsupportedError("has a ) without its (")
        return found

    def _ways(self) -> Group:
        """Up to the parenthesis that closes the group, or to the end. Flags set inside end with it."""
        kept = self._ignores_case, self._dot_all
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnsupportedError(f"nests groups more than {MAX_DEPTH} deep")
        ways = [tuple(self._sequence())]
        while self._taken("|"):
            ways.append(tuple(self._sequence()))
        self._depth -= 1
        self._ignores_case, self._dot_all = kept
        return Group(tuple(ways))

    def _sequence(self) -> Iterator[Node]:
        while self._at < len(self._regex) and self._regex[self._at] not in "|)":
            node = self._node()
            if node is not None:
                yield self._repeated(node)

    def _repeated(self, node: Node) -> Node:
        if _UP_TO.match(self._regex, self._at):
            raise UnsupportedError('counts from nothing, as "{,3}" does; write {0,3}')
        if (counted := _COUNT.match(self._regex, self._at)) is not None:
            self._at = counted.end()
            least = int(counted[1])
            most = least if not counted[2] else int(counted[3]) if counted[3] else None
            node = Repeat(node, least, most)
        elif self._taken("*"):
            node = Repeat(node, 0, None)
        elif self._taken("+"):
            node = Repeat(node, 1, None)
        elif self._taken("?"):
            node = Repeat(node, 0, 1)
        else:
            return node
        self._taken("?")
        return node

    def _node(self) -> Node | None:
        """One piece, without its repetition; None for flags."""
        char = self._regex[self._at]
        if char == "(":
            return self._group()
        if char == "[":
            return Characters(self._class())
        if char == "\\":
            position = _POSITIONS.get(self._regex[self._at : self._at + 2])
            if position is not None:
                self._at += 2
                return position
            return Characters(self._escape())
        self._at += 1
        match char:
            case "^":
                return SyntaxPosition("begin")
            case "$":
                return SyntaxPosition("end")
            case ".":
                return Characters(ANY if self._dot_all else ANY & ~_NEWLINE)
        return Characters(self._range(char, char))

    def _group(self) -> Group | None:
        kept = self._ignores_case, self._dot_all
        if (named := _NAMED.match(self._regex, self._at)) is not None:
            self._at = named.end()
            self._name(named[1])
        elif (flags := _FLAGS.match(self._regex, self._at)) is not None:
            self._at = flags.end()
            self._set(flags[1], on=True)
            self._set(flags[2] or "", on=False)
            if flags[3] == ")":
                return None
        elif self._regex.startswith("(?", self._at):
            raise UnsupportedError("has a group that begins with (? and is no group of RE2")
        else:
            self._at += 1
        found = self._ways()
        if not self._taken(")"):
            raise UnsupportedError("has a ( without its )")
        self._ignores_case, self._dot_all = kept
        return found

    def _name(self, name: str) -> None:
        if not name.isascii() or not name.isidentifier():
            raise UnsupportedError(f'names a group "{name}"; a name is made of letters, digits and _')
        if name in self._names:
            raise UnsupportedError(f'names two groups "{name}"; give each a name of its own')
        self._names.add(name)

    def _set(self, flags: str, *, on: bool) -> None:
        for flag in flags:
            match flag:
                case "i":
                    self._ignores_case = on
                case "s":
                    self._dot_all = on
                case _:
                    raise UnsupportedError(f'sets the flag "{flag}"; only i and s are taken')

    # ------------------------------------------------------------------ characters

    def _class(self) -> int:
        self._at += 1
        negated = self._taken("^")
        found, first = 0, True
        while first or not self._regex.startswith("]", self._at):
            first = False
            found |= self._member()
        self._at += 1
        return ANY & ~found | (found & OTHER) if negated else found

    def _member(self) -> int:
        """One of a class: a range, a character or a class within it."""
        if (posix := _POSIX_CLASS.match(self._regex, self._at)) is not None:
            self._at = posix.end()
            members = _POSIX[posix[2]]
            return ANY & ~members if posix[1] else members
        if self._regex[self._at : self._at + 2][1:] in _CLASSES and self._regex[self._at] == "\\":
            return self._escape()
        begin = self._character()
        if self._regex.startswith("-", self._at) and not self._regex.startswith("-]", self._at):
            self._at += 1
            return self._range(begin, self._character())
        return self._range(begin, begin)

    def _escape(self) -> int:
        members = _CLASSES.get(self._regex[self._at + 1])
        if members is not None:
            self._at += 2
            return members
        char = self._character()
        return self._range(char, char)

    def _character(self) -> str:
        """One character, as it is or escaped."""
        if self._at >= len(self._regex):
            raise UnsupportedError("has a [ without its ]")
        char = self._regex[self._at]
        if char != "\\":
            self._at += 1
            return char
        if (number := _NUMBER.match(self._regex, self._at)) is not None:
            self._at = number.end()
            hexadecimal = number[1] or number[2]
            return chr(int(hexadecimal, 16) if hexadecimal else int(number[3], 8))
        char = self._regex[self._at + 1]
        self._at += 2
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char.isalnum():
            raise UnsupportedError(rf"has \{char}; write out the characters that it takes")
        return char

    def _range(self, begin: str, end: str) -> int:
        first, last = ord(begin), ord(end)
        found = (1 << min(last, 127) + 1) - (1 << min(first, 128)) if first < 128 else 0
        if last > 127:
            found |= OTHER
        if self._ignores_case:
            letters = [chr(code) for code in range(128) if found >> code & 1 and chr(code).isalpha()]
            for letter in letters:
                found |= 1 << ord(letter.swapcase())
            if not _FOLDED_BEYOND_ASCII.isdisjoint(letters):
                found |= OTHER
        return found

    def _taken(self, text: str) -> bool:
        if not self._regex.startswith(text, self._at):
            return False
        self._at += len(text)
        return True
