"""A worker that breaks the protocol in the way its argument says. It needs no driver to do so."""

import sys
import time
from collections.abc import Callable

from nodeagent.core.model import Kind
from nodeagent.wire import MAX_LINE_BYTES, Batch, Device, Hello, Reply, Report, encode


def say(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def send(report: Report) -> None:
    say(encode(report))


def garbage() -> None:
    send(Hello())
    while True:
        say(b'{"type": "batch", "signals": [{"device": "no such fie\n\xff\xfe\x00\n[]\n{}\n')


def oversized() -> None:
    send(Hello())
    while True:
        say(b"x" * (MAX_LINE_BYTES + 1) + b"\n")


def endless() -> None:
    send(Hello())
    while True:
        say(b"y" * 65536)


def unasked() -> None:
    send(Hello(devices=(Device(device="chip0", kind=Kind.CHIP, vendor="fake"),)))
    while True:
        send(Reply(id=2**40, device="chip0", begun_ns=0, took_ns=0))


def early() -> None:
    while True:
        send(Batch(cursor=7))


def again() -> None:
    while True:
        send(Hello())


def silent() -> None:
    time.sleep(3600)


def hasty() -> None:
    """Ends at once, with the status of success."""


WAYS: dict[str, Callable[[], None]] = {
    way.__name__: way for way in (garbage, oversized, endless, unasked, early, again, silent, hasty)
}

if __name__ == "__main__":
    WAYS[sys.argv[1]]()
