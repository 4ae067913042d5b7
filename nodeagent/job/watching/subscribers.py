"""The programs of a job that subscribe to what the faults of its chips ask for.

A program sends ``subscribe`` to the socket of beats, from a socket that is bound to an address. Each gets the
current state at once and each change after it, as one datagram:

    handling=RERUN_REQUEST chip=npu3 code=80CB8009

``chip`` and ``code`` are left out where no fault asks for anything. UNKNOWN: the daemon does not answer. A
program that does not read holds nothing up: it gets the newest state once it has read.
"""

from collections.abc import Callable
from typing import Final

from nodeagent.job.model import RunRequest

MOST: Final = 64
"""So many addresses at most: each rank of a node may have one."""

UNKNOWN: Final = "handling=UNKNOWN"

Send = Callable[[bytes, str | bytes], object]


def text_of(wanted: RunRequest | None) -> str:
    """``wanted`` None: it is not known what the daemon wants."""
    if wanted is None:
        return UNKNOWN
    parts = (("handling", wanted.handling), ("chip", wanted.handling_chip), ("code", wanted.handling_code))
    return " ".join(f"{name}={value}" for name, value in parts if value)


class Subscribers:
    def __init__(self) -> None:
        self._sent: dict[str | bytes, str] = {}
        """The last text that each address has got; "" none yet."""

    def add(self, address: str | bytes | None) -> str:
        """Also one that is known: it gets the state again. What is wrong with it, "" if nothing."""
        if not address:
            return "subscribe: bind the socket to an address before"
        if address not in self._sent and len(self._sent) >= MOST:
            return f"subscribe: {MOST} programs of the job have subscribed already"
        self._sent[address] = ""
        return ""

    def send(self, text: str, send: Send) -> None:
        """To those who have not got it. One that has gone is forgotten."""
        for address, sent in tuple(self._sent.items()):
            if sent == text:
                continue
            try:
                send(text.encode(), address)
            except BlockingIOError:
                continue
            except OSError:
                del self._sent[address]
            else:
                self._sent[address] = text
