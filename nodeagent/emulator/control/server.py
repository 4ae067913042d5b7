"""The control socket of an emulated node: one JSON object a line in, one a line out; and its client, ``ask``.

An answer is ``{"ok": …}`` or ``{"error": text}``. A refused request changes nothing. Requests are done one
after the other. Only the user who started the emulator may connect.
"""

import functools
import operator
import os
import socket
import socketserver
import threading
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from nodeagent.emulator.control.call_requests import EmulatorRequest
from nodeagent.emulator.control.requests import REQUESTS
from nodeagent.emulator.node import EmulatedNode
from nodeagent.emulator.state import EmulatorStateError

SOCKET: Final = "control.sock"
LONGEST_LINE: Final = 1 << 16

_decoder: Final[msgspec.json.Decoder[EmulatorRequest]] = msgspec.json.Decoder(
    functools.reduce(operator.or_, REQUESTS)
)


def answer_line(node: EmulatedNode, line: bytes) -> bytes:
    """The answer to a line, without its end."""
    try:
        answer: dict[str, Any] = {"ok": _decoder.decode(line).do(node)}
    except (msgspec.DecodeError, ValueError, LookupError, EmulatorStateError) as refused:
        answer = {"error": str(refused)}
    return msgspec.json.encode(answer)


class _ControlConnection(socketserver.StreamRequestHandler):
    timeout = 60

    def handle(self) -> None:
        server = cast("Server", self.server)
        while line := self.rfile.readline(LONGEST_LINE):
            if not line.endswith(b"\n"):
                self.wfile.write(b'{"error":"a line ends with a newline after 65535 bytes at most"}\n')
                return
            with server.turn:
                answer = answer_line(server.node, line)
            self.wfile.write(answer + b"\n")


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Serves from construction on, in threads of its own, until ``close``."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, node: EmulatedNode) -> None:
        """Raises ``OSError`` where the socket cannot be made."""
        self.node: Final = node
        self.turn: Final = threading.Lock()
        self.path: Final = node.directory / SOCKET
        self.path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            super().__init__(str(self.path), _ControlConnection)
        finally:
            os.umask(before)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), name="emulator")
        self._thread.start()

    def close(self) -> None:
        """Ends what hangs, and answers no more."""
        self.shutdown()
        self._thread.join()
        self.server_close()
        self.path.unlink(missing_ok=True)
        self.node.release()


TIMEOUT_S: Final = 30.0


class RefusedByEmulator(ValueError):
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
        raise RefusedByEmulator(str(answer["error"]))
    return dict(answer["ok"])
