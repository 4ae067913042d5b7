"""A client under another user: makes its calls with the rights given, prints what came of each.

usage: peer.py SOCKET UID GID GROUP,GROUP... REQUEST...
"""

import json
import os
import sys

from nodeagent.client import Client, ClientError
from nodeagent.outlets.pb import control_service_pb2, fault_service_pb2


def main(socket: str, uid: str, gid: str, groups: str, *requests: str) -> None:
    os.setgroups([int(group) for group in groups.split(",") if group])
    os.setgid(int(gid))
    os.setuid(int(uid))
    with Client(socket) as client:
        for name in requests:
            module = fault_service_pb2 if hasattr(fault_service_pb2, name) else control_service_pb2
            try:
                client.call(getattr(module, name)())
                result = ["OK", ""]
            except ClientError as error:
                result = [error.status, error.reason]
            print(json.dumps(result))


main(*sys.argv[1:])
