r"""Regular expressions of RE2, which reads a text in time linear to its length, whatever the expression.

Tables are checked with it, and the kernel log is matched with it. Texts are bytes in UTF-8. The syntax is at
https://github.com/google/re2/wiki/Syntax: it has no look-around and no back-references; ``\d``, ``\s``,
``\w`` and ``\b`` know ASCII alone, and ``$`` is the end of the text and nowhere else.

By default RE2 prints what it refuses to standard error, and its module for Python keeps the 128 expressions
that it compiled last. Neither happens here.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import re2

MAX_BYTES: Final = 8 << 20
"""The memory that one expression may take: its program, and the states that texts have led to. RE2 keeps to
it: it forgets the states when there are too many.
"""

MAX_SET_BYTES: Final = 32 << 20
"""The same of a set of expressions. A set whose program needs more is divided."""

_FIXES: Final[Sequence[tuple[str, str]]] = (
    (r"operator: \(\?=", "looks ahead; match the text itself, or search it with the key find"),
    (r"operator: \(\?!", "looks ahead; put what must not follow into the key unless"),
    (r"operator: \(\?<=?!?", "looks behind; match the text before it, or put it into the key unless"),
    (r"operator: \(\?P$", "refers back to what a group matched; write out what may be there"),
    (r"sequence: \\[1-9]", "refers back to what a group matched; write out what may be there"),
    (r"operator: \(\?\(", "depends on a group; write two alternatives, as (?:a|b)"),
    (r"operator: \(\?>", "has an atomic group; write (?: in its place"),
    (r"repetition operator: .*\+$", "has a possessive repetition; leave out its second +"),
    (r"repetition operator: ", "repeats a repetition; put the inner one into (?: )"),
    (r"operator: \(\?#", "has a comment; write it above the pattern"),
    (r"operator: \(\?[a-zA-Z]", "sets a flag that RE2 does not have; only i and s are taken, as (?i)"),
    (r"sequence: \\Z", "has \\Z; write $ where the message ends"),
    (r"sequence: \\[uUN]", "has an escape that RE2 does not have; write the character itself, or \\x{1F600}"),
    (r"repetition size", "repeats more than 1,000 times, alone or nested; let it repeat fewer times"),
    (r"pattern too large", "needs too much memory; let its repetitions repeat fewer times"),
)
"""What RE2's error shows, and what is wrong and would be right in our words."""


class ExpressionError(ValueError):
    """RE2 does not take the expression; the text is what it says, and what to write in its place."""


class Expression:
    """``names`` of its groups. Raises ExpressionError where RE2 does not compile it."""

    def __init__(self, regex: str) -> None:
        try:
            self._compiled = re2.compile(regex.encode(), _options(MAX_BYTES))
        except re2.error as error:
            raise ExpressionError(_reason(error)) from None
        finally:
            re2.purge()
        self._groups = {name.decode(): number for name, number in self._compiled.groupindex.items()}
        self.names = self._groups.keys()

    def match(self, text: bytes) -> Mapping[str, str] | None:
        """The named groups that took part in a match at the beginning of the text; None if there is none."""
        return self._named(self._compiled.match(text))

    def search(self, text: bytes) -> Mapping[str, str] | None:
        """The same of the first match anywhere in the text."""
        return self._named(self._compiled.search(text))

    def _named(self, found: Any) -> Mapping[str, str] | None:
        if found is None:
            return None
        groups = {name: found.group(number) for name, number in self._groups.items()}
        return {name: value.decode() for name, value in groups.items() if value is not None}


class ExpressionSet:
    """Many expressions that are matched at once. RE2 must compile each of them.

    A set never runs out of memory: RE2 compiles none that has no room for 20 states, and a search needs two
    (re2/compile.cc, Compiler::CompileSet; re2/dfa.cc, DFA::DFA).
    """

    def __init__(self, regexes: Sequence[str]) -> None:
        self._sets = list(_sets(list(enumerate(regexes))))

    def matching(self, text: bytes) -> Sequence[int]:
        """The numbers of the expressions that match at the beginning of the text, ascending."""
        found: list[int] = []
        for numbers, compiled in self._sets:
            if places := compiled.Match(text):
                found += [numbers[place] for place in places]
        found.sort()
        return found


def _sets(regexes: Sequence[tuple[int, str]]) -> Iterator[tuple[Sequence[int], Any]]:
    compiled = re2.Set.MatchSet(_options(MAX_SET_BYTES, captures=False))
    for _, regex in regexes:
        compiled.Add(regex.encode())
    try:
        compiled.Compile()
    except re2.error:
        if len(regexes) < 2:
            raise
        middle = len(regexes) // 2
        yield from _sets(regexes[:middle])
        yield from _sets(regexes[middle:])
    else:
        yield [number for number, _ in regexes], compiled


def _options(max_bytes: int, *, captures: bool = True) -> re2.Options:
    options = re2.Options()
    options.max_mem = max_bytes
    options.log_errors = False
    options.never_capture = not captures
    return options


def _reason(error: re2.error) -> str:
    text = error.args[0]
    found = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
    fix = next((fix for shown, fix in _FIXES if re.search(shown, found)), None)
    return f"not a regular expression of RE2: {found}" + (f": it {fix}" if fix else "")
