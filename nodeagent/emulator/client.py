"""Asks the control socket of an emulated node. It checks nothing itself: the server knows what is right."""

import socket
from pathlib import Path
from typing import Any, Final

import msgspec

from nodeagent.emulator.server import SOCKET

TIMEOUT_S: Final = 30.0


class Refused(ValueError):
    """The server did nothing; its reason is the text."""


def ask(directory: Path, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request. Raises ``Refused``, and ``OSError`` where no emulator answers."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.connect(str(directory / SOCKET))
        connection.sendall(msgspec.json.encode(request) + b"\n")
        with connection.makefile("rb") as lines:
            line = lines.readline()
    if not line:
        raise ConnectionError("the emulator ended before it answered")
    answer = msgspec.json.decode(line, type=dict[str, Any])
    if "error" in answer:
        raise Refused(str(answer["error"]))
    return dict(answer["ok"])
