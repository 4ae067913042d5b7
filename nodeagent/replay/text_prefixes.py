"""What tools and people put before a line of a log. A new tool is a new row.

A prefix is removed only if a line in a known form follows it. A text that begins with a known form is read in
that form. So a text that a program chose does not become a kernel line because of a prefix.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nodeagent.replay.text_forms import FACILITIES, ISO, ISO_GROUPS, LEVELS, OF_THE_KERNEL, Found

INDENT: Final = "indent"
_PART: Final = r"[^\s:]{1,255}"
_MOST_DRESS: Final = 5


@dataclass(frozen=True, slots=True)
class Prefix:
    """The numbers of groups, 0 or none where it has no such: ``host``: whose line follows; ``facility``: its
    writer, as a name or a priority; ``time``: when the tool read it, in the groups of ISO.
    """

    name: str
    example: str
    regex: re.Pattern[str]
    host: int
    facility: int
    time: tuple[int, ...]

    def is_by_kernel(self, taken: Found) -> bool:
        """False if it shows that a program wrote the line."""
        return not self.facility or taken[self.facility] in OF_THE_KERNEL


Stripped = Sequence[tuple[Prefix, Found]]


def _prefix(name: str, example: str, regex: str) -> Prefix:
    compiled = re.compile(regex)
    groups = compiled.groupindex
    return Prefix(
        name=name,
        example=example,
        regex=compiled,
        host=groups.get("host", 0),
        facility=groups.get("facility", 0),
        time=tuple(groups[group] for group in ISO_GROUPS) if "date" in groups else (),
    )


_DRESS: Final = (
    _prefix(INDENT, "    ", r"[ \t\u00a0\u3000]+"),
    _prefix("quote", "> ", r"(?:>|&gt;|[|\u2502\u2503]) ?"),
    _prefix("list", "- ", r"(?:[-*+\u2022\u00b7]|\(?[0-9]{1,4}[.)]) "),
    _prefix("markup", "<pre>", r"[\"'`]{1,3}|</?[A-Za-z]{1,10}(?: [^<>]{0,100})?>"),
)
"""What people put before lines that they paste."""

CONTAINER: Final = _prefix(
    "container",
    "2025-03-11T03:11:09.123456789Z stdout F ",
    rf"{ISO}(?: (?:stdout|stderr) [FP](?::[A-Z])* |(?<=\.[0-9]{{9}}Z) |\t)",
)

PRIORITIES: Final = (
    _prefix("priority", "<3>", r"(?:[0-9]{1,5} (?=<))?(?:<|&lt;)(?P<facility>[0-9]{1,3})(?:>|&gt;)"),
    _prefix("dmesg -x", "kern  :err   : ", rf"(?P<facility>{FACILITIES}) *:(?:{LEVELS}) *: "),
)
"""Of a line of the kernel log, also where no time follows."""

PREFIXES: Final = (
    *_DRESS,
    *PRIORITIES,
    CONTAINER,
    _prefix(
        "grep -C", "kern.log-", rf"{_PART}?-(?=\[|<[0-9]|[0-9]{{4}}-[0-9]{{2}}-|[^\W\d]{{2,9}}\.? +[0-9])"
    ),
    _prefix("grep", "kern.log:17:", rf"(?:{_PART}?[:-])?[0-9]{{1,9}}[:-](?![\d ])|{_PART}:(?=\S)"),
    _prefix("host", "node-17: ", r"(?P<host>[\w.@%/:-]{1,255}): "),
    _prefix(
        "host, column",
        "node-17 | ",
        r"(?P<host>[\w.@%/:-]{1,255})(?: *\|(?: [A-Z]+ \|)*(?: rc=\d+ \|(?: \(std\w+\))?)? ?| ?> ?|\t)",
    ),
    _prefix("host, brackets", "[node-17] ", r"\[(?P<host>[A-Za-z][^\[\]\s]{0,255})\](?:<\w+>)?:? ?"),
    _prefix("rank", "[1,0]<stderr>:", r"\[[0-9]+,[0-9]+\]<\w+>:? ?"),
    _prefix(
        "pod",
        "reader main ",
        r"[\w.-]{1,253}(?: [\w.-]{1,63})? (?=\[ *[0-9]|<[0-9]|[0-9]{4}-[0-9]{2}-)",
    ),
    _prefix("console", "[03:11:09.123] ", r"\[?[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,6})?\]?:? "),
    _prefix("login", "node-17 login: ", r"(?P<host>[\w.-]{1,255}) login: "),
    _prefix("number", "17  ", r"[0-9]{1,9}[ \t](?=\D)"),
)
"""None takes more than one blank behind it: a deep indent is a sign of the rest of a message."""

_MARKS: Final = re.compile(
    r"-- |Message from syslogd@\S+ at |\u2591\u2591 |=?=> .* <=?=$"
    r"|[-=_~#*]{2,}(?: ?[\w .:/()-]{1,80} ?[-=_~#*]{2,})?$|[> ]*(?:```|~~~)[\w-]*$"
    r"|</?\w+>$|\[/?[A-Za-z]+\]$|\{\w+(?::\w+)?\}$|\[-- .*\]$|\[\d+\] [\d:]{8} \[[A-Z]+\] \S+$"
    r"|lines \d+-\d+|(?:\(?END\)?|\.\.\.)$"
    r"|\S+ \| (?:CHANGED|SUCCESS|FAILED|UNREACHABLE!?)\b.*(?:>>|=>)"
    r"|(?:\[[^\]]*\]|[\w.@:~/() -]{0,80})[#$%>] (?:sudo |zsh |ssh \S+ )*"
    r"(?:z?cat|z?grep|e?grep|rg|dmesg|journalctl|head|tail|less|pdsh|clush|ansible|kubectl|talosctl)\b"
    r"| (?:SUBSYSTEM|DEVICE)="
    r"|\[(?:  OK  |FAILED|DEPEND| INFO |\*+ *| *\*+)\] "
)
"""A boot in a journal, the sender of a message to each terminal, a catalogue, a file among others, a command,
a fence, a property of a record, what systemd writes to the console: all are no lines of the log."""

_AROUND_LINES: Final = re.compile(
    r" *(?:[\]\[{}]{1,3},?|\"[\w. -]{1,64}\": ?[\[{])$"
    r"|(?:ok|changed|failed|fatal): \[\S+\](?: =>.*)?$|(?:PLAY|TASK)\b.*\*{3}$"
    r"|\|[-:| ]+\|$"
)
"""Where lines are strings in JSON, as Ansible shows them, or are in a table. A log in JSON has a reader."""

_CLOSINGS: Final = {
    opening: re.compile(closing)
    for opening, closing in (
        ('"', r"\",?\s*$"),
        ("'", r"',?\s*$"),
        ("`", r"`{1,3}\s*$"),
        ("<", r"(?:</?[A-Za-z]{1,10} ?/?>)+\s*$"),
        ("|", r"\s*\|\s*$"),
        ("\u2502", r"\s*\u2502\s*$"),
        ("\u2503", r"\s*\u2503\s*$"),
    )
}


RULE: Final = "--------"
_HOST_TITLE: Final = re.compile(r"[\w.@:\[\],-]{1,255}(?: \([0-9]+\))?")
"""dshbak and clush -b write lines of a host below its name, and that between two rules."""

OF_WRITER: Final = ("[", "<", "kern ", "kern:")
"""Behind a date, where a writer would be named, these begin a line of dmesg: no host is called so."""


_WRITER: Final = re.compile(r" *(?:\S+ +)?[^\s\[\]]+\[[0-9]+\]: ")
_OF_KERNEL: Final = re.compile(
    r"\[ascend\] ?\[|[A-Za-z][\w-]*: |[\w-]+ [0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7][ :]"
    r"|nvme nvme[0-9]|EDAC |EXT4-fs |XFS \(|NETDEV WATCHDOG: |Memory failure: |Out of memory: "
)
"""How the kernel begins a message, and no host is called."""
_BARE_NAME: Final = re.compile(r" *(?:[\w.:@%/~-]++ +)?kernel +")


def names_writer(text: str, at: int) -> bool:
    """Whether a program with its pid is at this place, maybe after a host."""
    return _WRITER.match(text, at) is not None


def behind_bare_name(text: str, at: int) -> int:
    """Where the message begins, if the kernel is named without a colon: a column was cut out."""
    taken = _BARE_NAME.match(text, at)
    return at if taken is None else taken.end()


def is_of_kernel(text: str, at: int) -> bool:
    """Whether a message is at this place that begins as the kernel's do."""
    return _OF_KERNEL.match(text, at) is not None


def is_mark(text: str) -> bool:
    return _MARKS.match(text) is not None


def is_around_lines(text: str) -> bool:
    return _AROUND_LINES.match(text) is not None


def is_host_title(text: str) -> bool:
    return _HOST_TITLE.fullmatch(text) is not None


def undressed(text: str) -> str:
    """Without what people put before lines that they paste."""
    at, openings = 0, []
    for _ in range(_MOST_DRESS):
        taken = next(filter(None, (prefix.regex.match(text, at) for prefix in _DRESS)), None)
        if taken is None:
            break
        at = taken.end()
        openings.append(taken[0])
    return unclosed(text[at:], openings)


def unclosed(message: str, openings: Iterable[str]) -> str:
    """Without what ends a line that is in quotation marks, in a tag or in a table, by what opened it."""
    for opening in openings:
        if (closing := _CLOSINGS.get(opening[:1])) is not None:
            message = closing.sub("", message, count=1)
    return message
