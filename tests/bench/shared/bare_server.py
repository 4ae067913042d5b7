"""The floor for many subscribers: a gRPC server that does nothing but send bytes to all its streams.

``python -m tests.bench.shared.bare_server SOCKET``; for each line on stdin every open stream gets one message
of about the size of an event, that begins with the wall clock in nanoseconds.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator

import grpc

METHOD = ("bench.Bare", "Watch")
OPENING = b"opened"
PADDING = b"." * 400


class _Streams:
    def __init__(self) -> None:
        self._message = b""
        self._changed = asyncio.Event()

    def send(self) -> None:
        self._message = str(time.time_ns()).encode() + PADDING
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def watch(self, _request: bytes, _context: object) -> AsyncIterator[bytes]:
        changed = self._changed
        yield OPENING
        while True:
            await changed.wait()
            changed = self._changed
            yield self._message


async def _serve(socket: str) -> None:
    streams = _Streams()
    server = grpc.aio.server()
    service, method = METHOD
    handler = grpc.unary_stream_rpc_method_handler(streams.watch)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    print("ready", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        streams.send()
        print("done", flush=True)
    await server.stop(None)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
