"""The forms of a line of a kernel log: its time and its writer. A new form is a new row.

Each form was read from the source of its program: dmesg of util-linux (sys-utils/dmesg.c, print_record),
journalctl (systemd's src/shared/logs-show.c, output_short), rsyslog's templates, RFC 5424, machined of Talos
(v1alpha1_server.go, Dmesg), MindCluster's test data for EulerOS and Ascend (component/ascend-faultdiag/test).

Rows do not overlap: a line has the form of one row at most. A form with a writer has a group ``kernel``,
which matches if the kernel wrote the line. In the other forms each line counts as the kernel's.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nodeagent.replay.text_clock import TextClock, TimeGroups

FACILITIES: Final = "kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local[0-7]"
OF_THE_KERNEL: Final = frozenset({None, "kern", *"01234567"})
"""A facility's name, or a priority: facility * 8 + level. None: unknown."""

LEVELS: Final = "emerg|panic|alert|crit|error|err|warning|warn|notice|info|debug"
DATE: Final = r"(?P<date>[0-9]{4}[-/][0-9]{2}[-/][0-9]{2})"
TIME: Final = r"(?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2})"
FRACTION: Final = r"(?P<fraction>[0-9]{1,9})"
ZONE: Final = (
    r"(?:(?P<utc>[Zz])| ?(?P<sign>[+-])(?P<hours>[0-9]{2})(?::?(?P<minutes>[0-9]{2}))?| [A-Z]{2,5}(?=[ \]]))?"
)
"""One that has only a name is not read: CST is three zones."""

ISO: Final = rf"{DATE}[Tt ]{TIME}(?:\.{FRACTION})?{ZONE}"
ISO_GROUPS: Final = ("date", "time", "utc", "sign", "hours", "minutes", "fraction")
_MONTH_GROUPS: Final = ("words", "day", "time", "year", "year_first", "fraction")
_UP_GROUPS: Final = ("up", "up_part")

_UP: Final = r"\[ *(?P<up>[0-9]{1,12})\.(?P<up_part>[0-9]{1,9})(?: <[ 0-9.,*]+>)?\]"
_UP_BEHIND_NAME: Final = _UP.replace(r"\[ *", r"(?:\[ *| {2,})", 1)
"""Some versions of rsyslog lose the bracket."""
_CALLER: Final = r"(?: ?\[ *[TC][0-9]{1,10}\])? ?"
"""The task or processor that logged it, where the kernel or dmesg shows that."""
_OWN: Final = rf"(?:(?:[\w.-]++ )?kernel: )?(?:{_UP}{_CALLER})?"
"""Where each line is the kernel's its name and its own stamp may follow the time."""
_WORD: Final = r"[\w.:@%/~-]++(?<!:)"
"""No name of a host ends with a colon, and no line of the kernel has a process: those are other writers'."""
_BLANKED: Final = r"(?:<[A-Za-z_][\w .-]{0,40}>|\[[A-Za-z_][\w .-]{0,40}\]|\{[\w .-]{1,40}\}|[*#]{1,40})"
"""A host name that was removed before the log was published."""
_BY_KERNEL: Final = (
    rf"(?P<kernel> *(?:(?!(?:{FACILITIES})\.)(?P<host>{_WORD}|{_BLANKED}) +)?"
    rf"(?:(?:(?P<facility>{FACILITIES})\.\w+|{_WORD}) +)?"
    rf"(?:(?:kernel(?:\[-\])?:|\[kernel\]) |kernel:(?=\[ *[0-9]))(?:{_UP_BEHIND_NAME}{_CALLER})?)?"
)
_IN_COLUMNS: Final = (
    rf"\|(?P<kernel>(?:(?!(?i:{LEVELS})\|)(?P<host>[^|\s]{{1,64}})\|)?(?i:{LEVELS}|[0-7])\|"
    rf"kernel(?:\[-\])?(?:\||: ?)(?:{_UP}{_CALLER})?)?"
)
_OF_CONTAINERS: Final = r"\.[0-9]{9}Z"
"""Nine digits and a Z: kubelet and container runtimes write so, and they name no writer."""

_IN_A_WORD: Final = r"[^\s:\[\]<>|={}()\"]"
_MONTH_DAY: Final = (
    rf"(?P<words>[A-Z][a-z]{{2}}|(?:{_IN_A_WORD}{{1,16}} ){{0,2}}{_IN_A_WORD}{{1,16}}) +(?P<day>[0-3]?[0-9])"
)
"""The text is the month and what is before it: a weekday, a year, an article. The place decides."""
_MONTH_TIME: Final = rf"{_MONTH_DAY}(?: (?P<year_first>[12][0-9]{{3}}))? {TIME}(?:[.,]{FRACTION})?"
_YEAR: Final = r"(?P<year>[12][0-9]{3})"
_CELLS: Final = (
    rf" +\| +(?:(?P<host>{_WORD}) *\| *)?(?:(?:kernel|kern|(?i:{LEVELS})) *\| *)*"
    rf"(?:kernel: )?(?:{_UP}{_CALLER})?"
)
"""Of a table made of a log: its last column is the message."""
_NAME_ONLY: Final = rf"(?:[\w.-]++ )?kernel(?:\[-\])?(?:\||: |:(?=\[ *[0-9]|[A-Z]|\w+: ))(?:{_UP}{_CALLER})?"


Found = re.Match[str]


@dataclass(frozen=True, slots=True)
class LogForm:
    """``read`` makes a time of the groups ``time``. The others are numbers of groups, and 0 where the form
    has none: ``kernel`` takes part in lines of the kernel; ``facility`` names the writer of a line to the
    kernel log; ``up``: seconds since boot next to the date. ``begins``: its first characters; ``a`` is any
    letter, ``0`` any digit. ``wraps``: after it may come a whole line of another form.
    """

    name: str
    example: str
    begins: str
    regex: re.Pattern[str]
    read: Callable[[TextClock, TimeGroups], int]
    time: tuple[int, ...]
    kernel: int
    host: int
    facility: int
    up: tuple[int, ...]
    wraps: bool


def _form(
    name: str,
    example: str,
    begins: str,
    regex: str,
    read: Callable[[TextClock, TimeGroups], int],
    time: tuple[str, ...],
    *,
    wraps: bool = False,
) -> LogForm:
    compiled = re.compile(regex)
    groups = compiled.groupindex
    return LogForm(
        name=name,
        example=example,
        begins=begins,
        regex=compiled,
        read=read,
        time=tuple(groups[group] for group in time),
        kernel=groups.get("kernel", 0),
        host=groups.get("host", 0),
        facility=groups.get("facility", 0),
        up=tuple(groups[group] for group in _UP_GROUPS) if "up" in groups and "up" not in time else (),
        wraps=wraps,
    )


RECORD: Final = _form(
    "kmsg",
    "3,17,3600500000,-;message",
    "0",
    r"[0-9]{1,9},[0-9]{1,16},[0-9]{1,16},[^;]{0,64};",
    TextClock.since_boot,
    (),
)
"""Read by the parser of ``/dev/kmsg``: it has escapes, and marks what continues."""

FORMS: Final = (
    _form(
        "dmesg",
        "[  812.229390] message",
        "[<",
        rf"(?:<(?P<facility>[0-9]{{1,3}})>)?{_UP}{_CALLER}(?:(?:[\w.-]++ )?kernel: )?",
        TextClock.since_boot,
        _UP_GROUPS,
    ),
    _form(
        "dmesg-ctime",
        "[Tue Mar 11 03:11:09 2025] message",
        "[",
        rf"\[{_MONTH_TIME}(?: [A-Z]{{2,5}}| [+-][0-9]{{2,4}})? {_YEAR}(?: [^\]]*)?\]{_CALLER}{_OWN}",
        TextClock.of_month,
        _MONTH_GROUPS,
    ),
    _form(
        "dmesg-human",
        "[Mar11 03:11] message",
        "[",
        r"\[(?=[^\]:]*[^\W\d])(?P<words>[^\]:]{1,30}?)(?P<day>[ 0-3]?[0-9]) (?P<time>[0-9]{2}:[0-9]{2})\]"
        + _CALLER,
        TextClock.to_the_minute,
        ("words", "day", "time"),
    ),
    _form(
        "dmesg-delta",
        "[  +0.000021] message",
        "[",
        rf"(?:\[ *\+(?P<up>[0-9]{{1,9}})[.,](?P<up_part>[0-9]{{1,9}})\]|\[<[ 0-9.,]+>\]){_CALLER}",
        TextClock.since_last,
        _UP_GROUPS,
    ),
    _form(
        "dmesg-iso",
        "2025-03-11T03:11:09,123456+00:00 message",
        "0",
        rf"{DATE}[T ]{TIME},{FRACTION}{ZONE}(?= ){_CALLER}{_OWN}",
        TextClock.dated,
        ISO_GROUPS,
    ),
    RECORD,
    _form(
        "syslog",
        "Mar 11 03:11:09 host kernel: message",
        "a0",
        rf"{_MONTH_TIME}(?: {_YEAR}(?= ))? (?! *\| ){_BY_KERNEL}",
        TextClock.of_month,
        _MONTH_GROUPS,
        wraps=True,
    ),
    _form(
        "syslog-day",
        "11 Mar, 03:11:09 host kernel: message",
        "0",
        rf"(?P<day>[0-3]?[0-9])\.? (?P<words>(?:(?!,){_IN_A_WORD}){{1,16}}),?(?: {_YEAR},?)? {TIME}"
        rf"(?:[.,]{FRACTION})? {_BY_KERNEL}",
        TextClock.of_month,
        (*_MONTH_GROUPS[:3], "year", "year", "fraction"),
        wraps=True,
    ),
    _form(
        "iso",
        "2025-03-11T03:11:09.123456+00:00 host kernel: message",
        "a0",
        rf"(?:[^\s:\[\]<>|={{}}()0-9]{{1,12}} )?{ISO}(?<!{_OF_CONTAINERS}) (?!std(?:out|err) [FP]\b| *\| )"
        + _BY_KERNEL,
        TextClock.dated,
        ISO_GROUPS,
        wraps=True,
    ),
    _form(
        "unix",
        "1741662669.123456 host kernel: message",
        "0",
        rf"(?P<seconds>[0-9]{{9,11}})\.{FRACTION} {_BY_KERNEL}",
        TextClock.unix,
        ("seconds", "fraction"),
        wraps=True,
    ),
    _form(
        "rfc5424",
        "1 2025-03-11T03:11:09.123456Z host kernel - - - message",
        "0",
        rf"1 {ISO} (?P<host>[^ ]{{1,255}}) (?P<kernel>kernel [^ ]{{1,128}} [^ ]{{1,32}} "
        rf"(?:-|(?:\[(?:[^\]\"]|\"(?:[^\"\\]|\\.)*\")*\])+) ?(?:\ufeff)?(?:{_UP}{_CALLER})?)?",
        TextClock.dated,
        ISO_GROUPS,
    ),
    _form(
        "table",
        "2025-03-11T03:11:09.123456+00:00 | host | message",
        "0",
        rf"{ISO}{_CELLS}",
        TextClock.dated,
        ISO_GROUPS,
    ),
    _form(
        "table-month",
        "Mar 11 03:11:09 | host | message",
        "a0",
        rf"{_MONTH_TIME}(?: {_YEAR}(?= ))?{_CELLS}",
        TextClock.of_month,
        _MONTH_GROUPS,
    ),
    _form(
        "euleros",
        "2025-03-11T03:11:09.123456+08:00|err|kernel[-]|[  812.229390] message",
        "0",
        rf"{ISO}{_IN_COLUMNS}",
        TextClock.dated,
        ISO_GROUPS,
    ),
    _form(
        "euleros-month",
        "Mar 11 03:11:09|err|kernel[-]|[  812.229390] message",
        "a0",
        rf"{_MONTH_TIME}{_IN_COLUMNS}",
        TextClock.of_month,
        (*_MONTH_GROUPS[:3], "year_first", "year_first", "fraction"),
    ),
    _form(
        "ascend-host",
        "[2025-04-16-03:08:13.704360] [ascend] message",
        "[",
        rf"\[{DATE}[T -]{TIME}(?:[.,](?P<fraction>[0-9]{{1,9}}|[0-9]{{3}}\.[0-9]{{3}}))?{ZONE}\]"
        rf"(?: -)?:? ?{_OWN}",
        TextClock.dated_in_parts,
        ISO_GROUPS,
        wraps=True,
    ),
    _form(
        "ascend-device",
        "[ERROR] KERNEL(5044,sklogd):2024-07-29-10:33:22.646.254 [klogd.c:247][  812.229390] message",
        "[",
        r"\[[A-Z]{3,9}\] *(?:(?P<kernel>KERNEL)|[A-Z][A-Z0-9_]*)\([^()]{0,80}\):? *"
        rf"(?:{DATE}-{TIME}\.(?P<fraction>[0-9]{{1,6}}(?:\.[0-9]{{1,3}})?)(?P<utc>Z)? *)?"
        rf"(?(kernel)\[klogd\.c:[0-9]+\](?:\[tid:[0-9]+\])? ?{_UP}{_CALLER}|)",
        TextClock.of_device,
        ("date", "time", "utc", "up", "up_part", "fraction"),
    ),
    _form(
        "talosctl",
        "kern: warning: [2025-03-11T03:11:09.123456789Z]: message",
        "a",
        rf"(?P<facility>{FACILITIES}): +(?:{LEVELS}): \[{ISO}\]: ",
        TextClock.dated,
        ISO_GROUPS,
    ),
    _form(
        "untimed",
        "kernel: message",
        "a0",
        rf"(?:(?i:{LEVELS})\|)?{_NAME_ONLY}",
        TextClock.untimed,
        _UP_GROUPS,
    ),
)


def beginning_with(forms: tuple[LogForm, ...]) -> dict[str, tuple[LogForm, ...]]:
    """The forms to try by the kind of a line's first character, as ``kind_of`` has it."""
    return {kind: tuple(form for form in forms if kind in form.begins) for kind in "[<0a"}


def kind_of(character: str) -> str:
    """``0`` for a digit, ``[`` and ``<`` for themselves, ``a`` for all others."""
    if character in "[<":
        return character
    return "0" if "0" <= character <= "9" else "a"
