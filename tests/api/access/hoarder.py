"""A user who asks and takes nothing: connections with calls whose answers are never read.

usage: hoarder.py SOCKET UID METHOD CONNECTIONS CALLS WINDOW [REQUEST]
So many CALLS on each of so many CONNECTIONS; WINDOW is what the server may send on each unasked; REQUEST is
bytes in hexadecimal. It prints a line when all were sent, and ends with its standard input.
"""

import contextlib
import os
import sys
from pathlib import Path

from tests.api import http2


def main(
    path: str, uid: str, method: str, connections: str, calls: str, window: str, request: str = ""
) -> None:
    os.setgroups([])
    os.setgid(int(uid))
    os.setuid(int(uid))
    peers = []
    for _ in range(int(connections)):
        # One connection too many is closed by the daemon, maybe while we are still asking.
        with contextlib.suppress(ConnectionError):
            peers.append(http2.connected(Path(path), int(window)))
            for number in range(int(calls)):
                peers[-1].sendall(http2.call(number, method, bytes.fromhex(request)))
    print("asked", flush=True)
    sys.stdin.read()


main(*sys.argv[1:])
