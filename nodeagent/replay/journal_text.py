"""One entry of ``journalctl -o json``: its time and message, where the kernel's log is what it came from.

Only the fields that begin with ``_`` say whose entry it is: a program chooses the others. journald takes
the name of a program off the lines that user space wrote to the kernel log; here it is put back, so that
they read as the daemon reads them.
"""

from collections.abc import Callable
from typing import Any, Final

from nodeagent.replay.log import LogLine

_MICROSECOND_NS: Final = 1000
_KERNEL: Final = "kernel"


def is_entry(data: dict[str, Any]) -> bool:
    return "__REALTIME_TIMESTAMP" in data or "MESSAGE" in data


def read(data: dict[str, Any], report: Callable[[str, str], None]) -> LogLine | None:
    """None for an entry of another program, or one that was reported by field and reason."""
    transport = data.get("_TRANSPORT")
    if transport not in (None, _KERNEL):
        return None
    stamp = data.get("__REALTIME_TIMESTAMP")
    if not isinstance(stamp, str) or not stamp.isdecimal():
        report("__REALTIME_TIMESTAMP", f"{stamp!r}: must be microseconds since 1970, in quotes")
        return None
    message = _text(data.get("MESSAGE"))
    if message is None:
        report("MESSAGE", "must be text, or a list of bytes")
        return None
    by_kernel = data.get("SYSLOG_FACILITY", "0") == "0"
    trusted = transport == _KERNEL and by_kernel
    return LogLine(
        int(stamp) * _MICROSECOND_NS, message if by_kernel else _writer(data) + message, trusted=trusted
    )


def _writer(data: dict[str, Any]) -> str:
    """``NAME[PID]: ``, as the program began its line."""
    name, pid = data.get("SYSLOG_IDENTIFIER"), data.get("SYSLOG_PID")
    if not isinstance(name, str):
        return ""
    return f"{name}[{pid}]: " if isinstance(pid, str) else f"{name}: "


def _text(message: object) -> str | None:
    """The journal writes what is no UTF-8 as a list of numbers, and what is too long as null."""
    match message:
        case str():
            return message
        case None:
            return ""
        case list() if all(isinstance(byte, int) and 0 <= byte <= 255 for byte in message):
            return bytes(message).decode("utf-8", "backslashreplace")
        case _:
            return None
