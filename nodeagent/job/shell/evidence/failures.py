"""How the command of a run ended: its status, and what the run has left to read about it.

The error file is that of torch elastic: torch/distributed/elastic/multiprocessing/errors/error_handler.py
writes ``{"message": {"message": "ValueError: no such layer", "extraInfo": {...}}}``, or a text in place of
the inner object. It judges nothing.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nodeagent.job.inputs import Failure
from nodeagent.job.shell.disk import regular_files
from nodeagent.job.shell.evidence import standard_error

ERROR_FILE_VARIABLE: Final = "TORCHELASTIC_ERROR_FILE"

_MAX_TAIL_BYTES: Final = 64 * 1024
_MAX_ERROR_FILE_BYTES: Final = 1 << 20
_MAX_MESSAGE: Final = 4096


@dataclass(frozen=True, slots=True)
class Traces:
    """Where a run leaves what can be read about its end: noted before its command begins."""

    error_file: Path | None
    error_file_ns: int | None
    stderr_size: int | None

    @staticmethod
    def before(error_file: Path | None) -> "Traces":
        """What an earlier run has left in that file is not this one's."""
        return Traces(error_file, _written_ns(error_file), standard_error.size())


def failure_of(status: int, traces: Traces) -> Failure:
    """``status`` is that of ``waitpid``. A trace that cannot be read is none."""
    error_type, message = _error(traces)
    return Failure(
        status=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
        error_type=error_type,
        message=message,
        tail=_tail(traces.stderr_size),
    )


def _written_ns(path: Path | None) -> int | None:
    if path is None:
        return None
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _error(traces: Traces) -> tuple[str, str]:
    """(type, message)."""
    path = traces.error_file
    if path is None or _written_ns(path) == traces.error_file_ns:
        return "", ""
    try:
        text = regular_files.read(path, _MAX_ERROR_FILE_BYTES, is_own=False)
        content: Any = json.loads(text)
    except (OSError, ValueError, RecursionError):
        return "", ""
    while isinstance(content, dict):
        content = content.get("message")
    if not isinstance(content, str):
        return "", ""
    error_type, colon, message = content.partition(":")
    if not colon or not error_type.replace(".", "").isidentifier():
        return "", content[:_MAX_MESSAGE]
    return error_type, message.strip()[:_MAX_MESSAGE]


def _tail(since: int | None) -> str:
    if since is None:
        return ""
    try:
        return standard_error.appended(since, _MAX_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
