"""By which names reports and log folders keep a kernel log. A new name is a new row.

The names are those of sos (sos/report/plugins/kernel.py and logs.py), of nvidia-bug-report.sh, of the logs of
distributions and of kdump, and of what MindCluster collects (ascend_fd/pkg/parse/parser_saver.py).
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

_PACKED: Final = r"(?:\.(?:gz|bz2|xz|zst|lz4))?"


@dataclass(frozen=True, slots=True)
class Holding:
    """What a file of such a name holds. ``regex`` is of the name alone, without its folder."""

    what: str
    regex: re.Pattern[str]


def _holding(what: str, regex: str) -> Holding:
    return Holding(what, re.compile(rf"(?:{regex}){_PACKED}"))


HOLDINGS: Final = (
    _holding(
        "journal",
        r"journalctl(?:_--no-pager)?(?:\.txt|\.log)?|journal(?:d|ctl)?[\w-]*\.(?:log|txt|export|json)"
        r"|[\w@.-]+\.journal",
    ),
    _holding("journal of one boot", r"journalctl(?:[ _-]+no-pager)?[ _-]+(?:b|boot)(?:[ _=]-?\d+)?"),
    _holding("/var/log/messages", r"messages(?:[-_][\w-]*)?(?:\.\d+)?(?:\.txt|\.log)?"),
    _holding("/var/log/kern.log", r"kern(?:el)?\.log(?:[-_.]\d[\w-]*)?"),
    _holding("/var/log/syslog", r"syslog(?:[-_.]\d[\w-]*)?(?:\.txt|\.log)?"),
    _holding("dmesg -T", r"dmesg[ _.-]+(?:-?T|human|ctime)\b[\w.-]*"),
    _holding("dmesg", r"(?:\w+-)?(?:Current)?[Dd]mesg(?:[-_.](?!conf)[\w.-]*)?"),
    _holding("host_kernel.log of Ascend", r"host_kernel[\w-]*\.log(?:\.\d+)?"),
    _holding("kernel log of an Ascend device", r"device-os_\d+\.log"),
    _holding("console", r"(?:console|serial|sol)[\w-]*\.(?:log|txt)"),
)
"""The first knows best when a line was logged, and by whom."""

BUG_REPORT: Final = re.compile(rf"nvidia-bug-report[\w.-]*?\.log(?:\.old)?{_PACKED}")
_ANY_LOG: Final = re.compile(rf".*\.(?:log|txt){_PACKED}")


def rank_of(path: str) -> int | None:
    """The place in HOLDINGS of a file's path; None for one that holds no kernel log."""
    name = PurePosixPath(path).name
    return next((rank for rank, holding in enumerate(HOLDINGS) if holding.regex.fullmatch(name)), None)


def chosen(paths: list[str]) -> dict[str, int]:
    """The files to be read, each with its rank. Where none has such a name, all that may be logs."""
    named = {path: rank for path in paths if (rank := rank_of(path)) is not None}
    for path in paths:
        if BUG_REPORT.fullmatch(PurePosixPath(path).name):
            named[path] = len(HOLDINGS)
    if named:
        return named
    return {path: 0 for path in paths if len(paths) == 1 or _ANY_LOG.fullmatch(path)}
