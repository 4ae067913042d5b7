"""Many callers under another user, on one socket: opens what it is given, says what came of it, and holds it.

usage: crowd.py SOCKET UID GID METHOD COUNT [REQUEST]
METHOD is ``/package.Service/Method``; REQUEST its bytes in hexadecimal. It prints how many were answered, how
many refused, and the reason of the last refusal, and ends with its standard input.
"""

import asyncio
import json
import os
import sys

import grpc

LIMIT_S = 100.0
"""Less than its starter waits for it."""


async def main(socket: str, uid: str, gid: str, method: str, count: str, request: str = "") -> None:
    options = (("grpc.use_local_subchannel_pool", 1),)
    async with grpc.aio.insecure_channel(f"unix:{socket}", options=options) as channel:
        # What gRPC loads late it may not read as another user.
        os.setgroups([])
        os.setgid(int(gid))
        os.setuid(int(uid))
        calls = [channel.unary_stream(method)(bytes.fromhex(request)) for _ in range(int(count))]
        reasons = await asyncio.gather(*(_first(each) for each in calls))
        refused = [reason for reason in reasons if reason is not None]
        print(
            json.dumps([len(reasons) - len(refused), len(refused), refused[-1] if refused else ""]),
            flush=True,
        )
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(sys.stdin, ended.set)
        await ended.wait()
        # What an orderly end would import is not to be read as another user.
        os._exit(0)


async def _first(call: grpc.aio.UnaryStreamCall) -> str | None:
    """None where the call answers; the reason where it is refused."""
    try:
        async with asyncio.timeout(LIMIT_S):
            await call.read()
    except grpc.aio.AioRpcError as error:
        return f"{error.code().name}: {error.details()}"
    return None


asyncio.run(main(*sys.argv[1:]))
