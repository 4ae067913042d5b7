"""Network interfaces over rtnetlink: each change as it happens, and the whole list every minute.

The kernel drops messages for a socket whose buffer is full, and reports this once (ENOBUFS, netlink(7)). Then
only the list of all interfaces is right: so it is read at the start, every minute, and after a loss. The
changes are read in a thread of their own and handed to a listener, which decides which interfaces matter.
"""

import errno
import os
import select
import socket
import struct
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from pyroute2.netlink import NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR
from pyroute2.netlink.rtnl import RTM_DELLINK, RTM_GETLINK, RTM_NEWLINK, RTMGRP_LINK
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from nodeagent.drivers.link.interface import Interface, Vanished

RECEIVE_BUFFER_BYTES: Final = 1 << 20
_CHUNK_BYTES: Final = 1 << 16
"""A dump comes in parts of up to 32 KiB (netlink_dump in net/netlink/af_netlink.c)."""

_LIST_LIMIT_S: Final = 3.0
_LIST_TRIES: Final = 5

_HEADER: Final = struct.Struct("=IHHII")
"""``struct nlmsghdr``: length, type, flags, sequence number, port."""

_BODY: Final = struct.Struct("=BxHi")
"""The beginning of ``struct ifinfomsg``: family, type, index. Messages of other families, such as AF_BRIDGE,
mean that an interface left a bridge, not that it is gone.
"""

_IFF_UP: Final = 1 << 0
_IFF_LOWER_UP: Final = 1 << 16


class Overrun(Exception):
    """The socket was full: messages of the kernel were lost."""


class LinkSocket:
    """What changes. ``wanted`` tests by its index whether an interface is read."""

    def __init__(
        self, wanted: Callable[[int], bool], receive_buffer_bytes: int = RECEIVE_BUFFER_BYTES
    ) -> None:
        self._wanted = wanted
        self._socket = _open()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self._socket.setblocking(False)
        self._socket.bind((0, RTMGRP_LINK))

    def fileno(self) -> int:
        return self._socket.fileno()

    def changes(self) -> Iterator[Interface | Vanished]:
        """What has come since the last call. Raises ``Overrun``, and then holds nothing more."""
        while True:
            try:
                chunk = self._socket.recv(_CHUNK_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self._discard()
                raise Overrun("messages about network interfaces were lost") from None
            for kind, _, index, message in _messages(chunk):
                if kind == RTM_DELLINK:
                    yield Vanished(index=index)
                elif kind == RTM_NEWLINK and self._wanted(index):
                    yield _interface(message)

    def close(self) -> None:
        self._socket.close()

    def _discard(self) -> None:
        """What still lies there is older than what was lost."""
        while True:
            try:
                self._socket.recv(_CHUNK_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise


def list_interfaces(wanted: Callable[[int], bool] = lambda _: True) -> Mapping[int, Interface]:
    """All of this network namespace, by index. Raises ``OSError``."""
    for _ in range(_LIST_TRIES):
        listed = _list_once(wanted)
        if listed is not None:
            return listed
    raise OSError(errno.EAGAIN, "the network interfaces change faster than they can be listed")


def _list_once(wanted: Callable[[int], bool]) -> Mapping[int, Interface] | None:
    """None: it changed meanwhile, so that one may be missing."""
    request: Any = ifinfmsg()
    request["header"]["type"] = RTM_GETLINK
    request["header"]["flags"] = NLM_F_REQUEST | NLM_F_DUMP
    request.encode()
    found: dict[int, Interface] = {}
    is_whole = True
    with _open() as query:
        query.settimeout(_LIST_LIMIT_S)
        query.send(request.data)
        while True:
            for kind, flags, index, message in _messages(query.recv(_CHUNK_BYTES)):
                is_whole = is_whole and not flags & NLM_F_DUMP_INTR
                if kind == NLMSG_DONE:
                    return found if is_whole else None
                if kind == NLMSG_ERROR:
                    raise OSError(-_error_number(message), "the kernel does not list network interfaces")
                if kind == RTM_NEWLINK and wanted(index):
                    found[index] = _interface(message)


def _open() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)


def _messages(chunk: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """For each message its type, its flags, the index of its interface, and itself."""
    at = 0
    while at + _HEADER.size <= len(chunk):
        length, kind, flags, _, _ = _HEADER.unpack_from(chunk, at)
        if length < _HEADER.size or at + length > len(chunk):
            return
        message = chunk[at : at + length]
        at += (length + 3) & ~3
        if kind not in (RTM_NEWLINK, RTM_DELLINK):
            yield kind, flags, 0, message
        elif length >= _HEADER.size + _BODY.size:
            family, _, index = _BODY.unpack_from(message, _HEADER.size)
            if family == socket.AF_UNSPEC:
                yield kind, flags, index, message


def _error_number(message: bytes) -> int:
    number: int = struct.unpack_from("=i", message, _HEADER.size)[0]
    return number


def _interface(message: bytes) -> Interface:
    decoded: Any = ifinfmsg(message)
    decoded.decode()
    flags = decoded["flags"]
    details = decoded.get_attr("IFLA_LINKINFO")
    is_in_bond = details is not None and details.get_attr("IFLA_INFO_SLAVE_KIND") == "bond"
    return Interface(
        index=decoded["index"],
        name=decoded.get_attr("IFLA_IFNAME") or "",
        is_enabled=bool(flags & _IFF_UP),
        has_carrier=bool(flags & _IFF_LOWER_UP),
        losses=decoded.get_attr("IFLA_CARRIER_DOWN_COUNT") or 0,
        gains=decoded.get_attr("IFLA_CARRIER_UP_COUNT") or 0,
        kind=(details.get_attr("IFLA_INFO_KIND") if details is not None else None) or "",
        bond=(decoded.get_attr("IFLA_MASTER") or 0) if is_in_bond else 0,
    )


LIST_EACH_S: Final = 60.0


class InterfaceListener(Protocol):
    """The functions that are called on a change. All calls come from the follower's thread, but for the first
    ``interfaces_listed``.
    """

    def is_relevant(self, index: int) -> bool:
        """Whether the interface of this index is worth being read."""

    def interfaces_listed(self, interfaces: Mapping[int, Interface]) -> None:
        """These there are, and no others that are wanted."""

    def changed(self, changes: Sequence[Interface | Vanished]) -> None:
        """These interfaces have changed, in this order."""

    def report_due(self) -> float | None:
        """Report what has fallen due. The answer: in how many seconds something more will; None: nothing."""


class LinkFollower:
    """``begin`` subscribes and lists, and then follows until ``end``. ``failed`` is why it stopped by
    itself.
    """

    def __init__(
        self, taker: InterfaceListener, receive_buffer_bytes: int, list_each_s: float = LIST_EACH_S
    ) -> None:
        self.failed = ""
        self.overruns = 0
        self.changes = 0
        self.lists = 0
        self._taker = taker
        self._list_each_s = list_each_s
        self._socket = LinkSocket(taker.is_relevant, receive_buffer_bytes)
        self._end: Final = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._list_at_s = 0.0

    def begin(self) -> None:
        """Raises ``OSError``."""
        self._list()
        threading.Thread(target=self._run, name="netlink", daemon=True).start()

    def end(self) -> None:
        os.eventfd_write(self._end, 1)

    def _run(self) -> None:
        """The thread's boundary: if it fails, the next listing of ports reports it and the worker ends."""
        try:
            self._follow()
        except OSError as error:
            self.failed = f"netlink cannot be read: {error.strerror or error}"
        except Exception as error:  # noqa: BLE001  the boundary of a thread; it reports
            traceback.print_exc()
            self.failed = f"the reader of netlink failed: {error!r}"

    def _follow(self) -> None:
        waiting = select.poll()
        for descriptor in (self._socket.fileno(), self._end):
            waiting.register(descriptor, select.POLLIN)
        while True:
            due_s = self._taker.report_due()
            left_s = max(0.0, self._list_at_s - time.monotonic())
            ready = waiting.poll(1000 * (left_s if due_s is None else min(left_s, due_s)) + 1)
            if any(descriptor == self._end for descriptor, _ in ready):
                return
            try:
                changes = list(self._socket.changes())
            except Overrun:
                self.overruns += 1
                self._list()
                continue
            if changes:
                self.changes += len(changes)
                self._taker.changed(changes)
            if time.monotonic() >= self._list_at_s:
                self._list()

    def _list(self) -> None:
        self._list_at_s = time.monotonic() + self._list_each_s
        self._taker.interfaces_listed(list_interfaces(self._taker.is_relevant))
        self.lists += 1
