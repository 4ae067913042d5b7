"""A client under another user: makes its calls with the rights given, prints what came of each.

usage: peer.py SOCKET UID GID GROUP,GROUP... NAME=REQUEST...
A request is its message's name and its bytes in hexadecimal.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from google.protobuf.message import Message

from nodeagent.client import Client, ClientError
from nodeagent.messages.pb import control_service_pb2, fault_service_pb2
from tests.api.stage import Stage

NOBODY = 65534
LIMIT_S = 60.0


def main(socket: str, uid: str, gid: str, groups: str, *requests: str) -> None:
    os.setgroups([int(group) for group in groups.split(",") if group])
    os.setgid(int(gid))
    os.setuid(int(uid))
    with Client(socket) as client:
        for request in requests:
            name, _, body = request.partition("=")
            module = fault_service_pb2 if hasattr(fault_service_pb2, name) else control_service_pb2
            try:
                client.call(getattr(module, name).FromString(bytes.fromhex(body)))
                result = ["OK", ""]
            except ClientError as error:
                result = [error.status, error.reason]
            print(json.dumps(result))


async def as_user(
    stage: Stage,
    uid: int,
    *requests: Message,
    socket: Path | None = None,
    gid: int = NOBODY,
    groups: str = "",
) -> list[tuple[str, str]]:
    """What came of calls on a socket, the public one by default, which is opened to everybody here."""
    path = socket or stage.socket
    path.chmod(0o666)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.api.peer", str(path), str(uid), str(gid), groups),
        *(f"{request.DESCRIPTOR.name}={request.SerializeToString().hex()}" for request in requests),
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(LIMIT_S):
        printed, _ = await child.communicate()
    assert child.returncode == 0
    return [(status, reason) for status, reason in map(json.loads, printed.splitlines())]


if __name__ == "__main__":
    main(*sys.argv[1:])
