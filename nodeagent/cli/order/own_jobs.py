"""The jobs of the calling user, asked at the socket that every supervisor uses: no group is needed for it.

``nodeagent job list`` and ``job show`` come here where the user may not read the daemon's own socket. It
changes nothing, and starts no job.
"""

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.json_format import Parse, ParseError

from nodeagent.cli.shared.errors import EXIT_FAILED, EXIT_UNAVAILABLE, CommandFailure
from nodeagent.client.calls import CALL_TIMEOUT_S
from nodeagent.job.codec import CodecError
from nodeagent.job.lines import (
    MAX_LINE_BYTES,
    AskOwnJobs,
    OwnJob,
    OwnJobEvent,
    OwnJobsEnd,
    SupervisorRefused,
    decode,
    encode,
)
from nodeagent.messages.pb import types_pb2


@dataclass(slots=True)
class OwnJobs:
    """``events`` are of the job that was named, oldest first."""

    jobs: list[types_pb2.Job] = field(default_factory=list)
    events: list[types_pb2.Event] = field(default_factory=list)


def ask(path: Path, job: str = "") -> OwnJobs:
    """Raises ``CommandFailure``."""
    found = OwnJobs()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(CALL_TIMEOUT_S)
            connection.connect(os.fspath(path))
            connection.sendall(encode(AskOwnJobs(job=job)))
            for line in _lines(connection):
                if _take(line, found):
                    return found
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandFailure(
            f"your own jobs cannot be asked at {path}: {reason}", EXIT_UNAVAILABLE
        ) from error
    except (CodecError, ParseError) as error:
        raise CommandFailure(f"{path}: an answer that is not understood: {error}", EXIT_FAILED) from error
    raise CommandFailure(f"the daemon at {path} ended the connection before its answer", EXIT_UNAVAILABLE)


def _take(line: bytes, found: OwnJobs) -> bool:
    """Whether it was the last."""
    match decode(line):
        case OwnJob(message=message):
            found.jobs.append(Parse(message, types_pb2.Job(), ignore_unknown_fields=True))
        case OwnJobEvent(message=message):
            found.events.append(Parse(message, types_pb2.Event(), ignore_unknown_fields=True))
        case SupervisorRefused(why=why):
            raise CommandFailure(f"the daemon refuses to list your own jobs: {why}", EXIT_FAILED)
        case OwnJobsEnd():
            return True
    return False


def _lines(connection: socket.socket) -> Iterator[bytes]:
    with connection.makefile("rb", buffering=MAX_LINE_BYTES) as stream:
        while line := stream.readline(MAX_LINE_BYTES + 1):
            yield line
