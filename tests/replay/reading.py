"""Text of a kernel log, read as ``replay`` reads it."""

import io
from collections.abc import Sequence
from datetime import UTC, datetime

from nodeagent.replay.kernel_text import KernelText
from nodeagent.replay.log import GivenFile, LogLine, ReadTally

WRITTEN = datetime(2026, 11, 27, 12, tzinfo=UTC)


def read(text: str | bytes, *, only: str | None = None, boot_ns: int = 0) -> tuple[list[LogLine], ReadTally]:
    """The lines of a file that was last written at ``WRITTEN``."""
    tally = ReadTally()
    given = GivenFile(boot_ns=boot_ns, written_ns=int(WRITTEN.timestamp() * 1e9), tally=tally, only=only)
    raw = text.encode() if isinstance(text, str) else text
    return list(KernelText(given).read_file(io.BytesIO(raw))), tally


def said(lines: Sequence[LogLine]) -> list[str]:
    """Each line as its time, ``?`` before what nobody vouches for, and the message."""
    return [
        f"{time_of(line)} {'' if line.trusted else '? '}{line.message}" for line in lines if not line.unread
    ]


def time_of(line: LogLine) -> str:
    """With so many digits of the second as it has."""
    whole, part = divmod(line.at_ns, 1_000_000_000)
    digits = f".{part:09}".rstrip("0").rstrip(".")
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S") + digits
