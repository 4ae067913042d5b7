"""Requests to one BMC through the kernel: each goes to ``/dev/ipmi0``, and its answer comes back in time or
not.

The interface is the kernel's (include/uapi/linux/ipmi.h; drivers/char/ipmi/ipmi_devintf.c): two ioctls on a
descriptor that is readable when an answer has come. Both return at once; ``poll`` waits, with a limit. A late
answer is still delivered, before the answer to the next request, so each answer is matched by the number of
its request. All requests of one reading share one time limit; a busy BMC is asked again within it. No command
is known here.

Python packages for IPMI work over the network (pyghmi, python-ipmi) or run ipmitool. pyghmi's
``localsession`` takes any next answer for the one it waits for, and waits without limit.
"""

import ctypes
import errno
import os
import select
import time
from ctypes import byref, c_char_p, c_int, c_long, c_short, c_ubyte, c_uint, c_ulong, c_ushort, c_void_p
from pathlib import Path
from typing import Any, Final

from nodeagent.drivers.api import CallFailed, Unavailable
from nodeagent.drivers.shared.denied import hint

SYSTEM_INTERFACE: Final = 0x0C
BMC_CHANNEL: Final = 0xF
RESPONSE: Final = 1
MAX_ANSWER_BYTES: Final = 1024
"""The kernel's own limit is 272 (IPMI_MAX_MSG_LENGTH), so nothing is ever cut off."""

NODE_BUSY: Final = 0xC0
INVALID_COMMAND: Final = 0xC1
COMPLETION_CODES: Final = {
    NODE_BUSY: "the BMC is busy",
    INVALID_COMMAND: "the BMC does not know the command",
    0xC2: "the BMC does not know the command here",
    0xC3: "the BMC did not answer in time",
    0xC4: "the BMC is out of space",
    0xC5: "the reservation was cancelled",
    0xC9: "a parameter is out of range",
    0xCB: "there is no such record",
    0xCE: "the BMC cannot answer",
    0xD0: "the BMC is updating its repository",
    0xD1: "the BMC is updating its firmware",
    0xD2: "the BMC is starting",
    0xD3: "the destination is unavailable",
    0xD4: "the BMC does not permit it",
    0xD5: "the BMC does not do it in its present state",
    0xFF: "the BMC did not answer the kernel",
}
"""IPMI 2.0, table 5-2. 0xFF is also what the kernel answers for a BMC that it gives up (ipmi_si_intf.c)."""

_NO_BMC: Final = frozenset({errno.ENOENT, errno.ENXIO, errno.ENODEV})


class _Address(ctypes.Structure):
    """``struct ipmi_system_interface_addr``."""

    _fields_ = (("addr_type", c_int), ("channel", c_short), ("lun", c_ubyte))


class _IpmiMessage(ctypes.Structure):
    """``struct ipmi_msg``."""

    _fields_ = (("netfn", c_ubyte), ("cmd", c_ubyte), ("data_len", c_ushort), ("data", c_void_p))


class _IpmiRequest(ctypes.Structure):
    """``struct ipmi_req``."""

    _fields_ = (("addr", c_void_p), ("addr_len", c_uint), ("msgid", c_long), ("msg", _IpmiMessage))


class _Received(ctypes.Structure):
    """``struct ipmi_recv``; the address that is written there is 36 bytes at most (``struct ipmi_addr``)."""

    _fields_ = (
        ("recv_type", c_int),
        ("addr", c_void_p),
        ("addr_len", c_uint),
        ("msgid", c_long),
        ("msg", _IpmiMessage),
    )


_READ: Final = 2
_WRITE: Final = 1


def _number(direction: int, number: int, structure: type[ctypes.Structure]) -> int:
    """``_IOC`` of include/uapi/asm-generic/ioctl.h, which x86 and ARM share."""
    return direction << 30 | ctypes.sizeof(structure) << 16 | ord("i") << 8 | number


SEND_COMMAND: Final = _number(_READ, 13, _IpmiRequest)
RECEIVE_MSG: Final = _number(_READ | _WRITE, 12, _Received)


class IpmiTimeout(CallFailed):
    """Nothing came within the time, or the kernel reports that the BMC did not answer."""


class IpmiRefused(CallFailed):
    """The BMC answered with a completion code that is not 0; it is ``errno``."""

    def __init__(self, what: str, code: int) -> None:
        why = COMPLETION_CODES.get(code, "the BMC refuses it")
        super().__init__(f"{what}: {why} (completion code 0x{code:02X})", errno=code)
        self.code = code


class Bmc:
    """``library`` has ``open``, ``ioctl`` and ``close``; "": the C library. For one thread."""

    def __init__(self, path: str, library: str = "") -> None:
        self._path = path
        self._library_path = library
        self._library: Any = None
        self._descriptor = -1
        self._last_id = 0
        self.requests = 0
        self.late_answers = 0

    def open(self) -> None:
        """Raises ``Unavailable``: absent where no BMC is, or the kernel has no driver for it."""
        try:
            self._library = self._library or _functions(self._library_path)
        except OSError as error:
            raise Unavailable(str(error), absent=not Path(self._library_path).exists()) from None
        descriptor = self._library.open(os.fsencode(self._path), os.O_RDWR | os.O_CLOEXEC)
        if descriptor < 0:
            number = ctypes.get_errno()
            reason = f"cannot open {self._path}: {os.strerror(number)}"
            if number in _NO_BMC:
                reason += "; a node with a BMC needs the kernel modules ipmi_devintf and ipmi_si"
                raise Unavailable(reason, errno=number, absent=True)
            raise Unavailable(reason + hint(number), errno=number)
        self._descriptor = descriptor

    def close(self) -> None:
        """Late answers of the BMC are dropped."""
        if self._descriptor >= 0:
            self._library.close(self._descriptor)
            self._descriptor = -1

    def ask(self, what: str, netfn: int, command: int, data: bytes = b"", *, until_s: float) -> bytes:
        """The answer to a request, behind its completion code. ``until_s`` is a time of ``time.monotonic``.

        ``what`` is for people. Raises ``NoAnswer``, ``Refused``, and ``CallFailed`` for what the kernel
        refuses or what is no answer.
        """
        if self._descriptor < 0:
            raise CallFailed(f"{what}: {self._path} is not open")
        self._send(what, netfn, command, data)
        poller = select.poll()
        poller.register(self._descriptor, select.POLLIN)
        while (left_s := until_s - time.monotonic()) > 0:
            poller.poll(left_s * 1000)
            answer = self._receive(what, netfn, command)
            if answer is not None:
                return _completed(what, answer)
        raise IpmiTimeout(f"{what}: the BMC does not answer")

    def _send(self, what: str, netfn: int, command: int, data: bytes) -> None:
        self._last_id += 1
        self.requests += 1
        address = _Address(SYSTEM_INTERFACE, BMC_CHANNEL, 0)
        buffer = ctypes.create_string_buffer(data, len(data)) if data else None
        request = _IpmiRequest(
            ctypes.addressof(address),
            ctypes.sizeof(address),
            self._last_id,
            _IpmiMessage(netfn, command, len(data), ctypes.addressof(buffer) if buffer is not None else None),
        )
        if self._library.ioctl(self._descriptor, SEND_COMMAND, byref(request)) < 0:
            raise _failed(what, "send to", self._path)

    def _receive(self, what: str, netfn: int, command: int) -> bytes | None:
        """The answer to the last request, None if none lies there yet. Others are late, and thrown away."""
        address = ctypes.create_string_buffer(64)
        buffer = ctypes.create_string_buffer(MAX_ANSWER_BYTES)
        while True:
            received = _Received(
                addr=ctypes.addressof(address),
                addr_len=len(address),
                msg=_IpmiMessage(data_len=len(buffer), data=ctypes.addressof(buffer)),
            )
            if self._library.ioctl(self._descriptor, RECEIVE_MSG, byref(received)) < 0:
                if ctypes.get_errno() in (errno.EAGAIN, errno.EINTR):
                    return None
                raise _failed(what, "read from", self._path)
            if received.recv_type != RESPONSE or received.msgid != self._last_id:
                self.late_answers += 1
                continue
            if (received.msg.netfn, received.msg.cmd) != (netfn | 1, command):
                raise CallFailed(f"{what}: the answer is to another command")
            return buffer.raw[: min(received.msg.data_len, len(buffer))]


def _functions(path: str) -> Any:
    """Raises ``OSError``."""
    library = ctypes.CDLL(path or None, use_errno=True)
    library.open.argtypes, library.open.restype = (c_char_p, c_int), c_int
    library.ioctl.argtypes, library.ioctl.restype = (c_int, c_ulong, c_void_p), c_int
    library.close.argtypes, library.close.restype = (c_int,), c_int
    return library


def _failed(what: str, doing: str, path: str) -> CallFailed | Unavailable:
    """The kernel's refusal; where its driver has let go of the BMC, another process may find it again."""
    number = ctypes.get_errno()
    reason = f"{what}: cannot {doing} {path}: {os.strerror(number)}"
    if number in (errno.ENODEV, errno.ENXIO, errno.EBADF):
        return Unavailable(reason, errno=number)
    return CallFailed(reason, errno=number)


def _completed(what: str, answer: bytes) -> bytes:
    if not answer:
        raise CallFailed(f"{what}: the answer is empty")
    if answer[0] == 0:
        return answer[1:]
    refused = IpmiRefused(what, answer[0])
    if answer[0] in (0xC3, 0xFF):
        raise IpmiTimeout(str(refused), errno=answer[0])
    raise refused


ANSWER_LIMIT_S: Final = 5.0
"""So long one answer may take; ipmi_kcs_sm.c of the kernel gives the BMC as long for each byte
(OBF_RETRY_TIMEOUT).
"""

READING_LIMIT_S: Final = 20.0
BUSY_PAUSE_S: Final = 0.2
BUSY_TRIES: Final = 5


class BmcSession:
    """``limit_s`` from now on."""

    def __init__(self, bmc: Bmc, limit_s: float = READING_LIMIT_S) -> None:
        self._bmc = bmc
        self._until_s = time.monotonic() + limit_s

    def ask(self, what: str, netfn: int, command: int, data: bytes = b"") -> bytes:
        """As ``Bmc.ask``."""
        for _ in range(BUSY_TRIES - 1):
            try:
                return self._ask_once(what, netfn, command, data)
            except IpmiRefused as refused:
                if refused.code != NODE_BUSY:
                    raise
            time.sleep(BUSY_PAUSE_S)
        return self._ask_once(what, netfn, command, data)

    def _ask_once(self, what: str, netfn: int, command: int, data: bytes) -> bytes:
        until_s = min(self._until_s, time.monotonic() + ANSWER_LIMIT_S)
        return self._bmc.ask(what, netfn, command, data, until_s=until_s)
