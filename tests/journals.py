"""Journals of systemd, made by its own program from the export form."""

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

JOURNAL_REMOTE: Final = "/lib/systemd/systemd-journal-remote"
STOPPED: Final = "d93fb3c9c24d451a97cea615ce59c00b"
"""MESSAGE_ID of journald's last words in a boot that ends in order (sd-messages.h)."""

FILE: Final = "earlier.journal"
"""Not the name of the file that a journald would write."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Of the kernel unless the fields say otherwise; ``at_s`` since 1970. ``boot``: 32 hexadecimal digits."""

    boot: str
    at_s: int
    message: str
    fields: dict[str, str] = field(default_factory=dict)


def write_journal(folder: Path, entries: Iterable[Entry]) -> Path:
    """The folder."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [JOURNAL_REMOTE, "-o", folder / FILE, "-"],
        input="".join(map(_exported, entries)),
        text=True,
        check=True,
        capture_output=True,
    )
    return folder


def _exported(entry: Entry) -> str:
    fields = {
        "__REALTIME_TIMESTAMP": str(entry.at_s * 1_000_000),
        "__MONOTONIC_TIMESTAMP": str(entry.at_s * 1_000_000),
        "_BOOT_ID": entry.boot,
        "_TRANSPORT": "kernel",
        "SYSLOG_FACILITY": "0",
        "MESSAGE": entry.message,
        **entry.fields,
    }
    return "".join(f"{name}={value}\n" for name, value in fields.items()) + "\n"
