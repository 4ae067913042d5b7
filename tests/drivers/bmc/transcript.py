"""What a BMC's device file does, call by call, as lines of text: of the kernel's own, or of the double.

    python -m tests.drivers.bmc.transcript PATH [LIBRARY]

``tests/fixtures/bmc/linux-6.1.txt`` is what it printed on Linux 6.1 (of Debian 12, drivers ipmi_devintf and
ipmi_si) with QEMU's BMC (``-device ipmi-bmc-sim,id=bmc0 -device isa-ipmi-kcs,bmc=bmc0``), whose log is empty
at first. What differs from one BMC to another (its id, times) is shown as its length only.
"""

import ctypes
import errno
import os
import select
import sys
import time
from collections.abc import Iterator
from ctypes import byref
from typing import Any

from nodeagent.drivers.bmc import ipmi
from nodeagent.drivers.bmc.ipmi import RECEIVE_MSG, SEND_COMMAND

RECEIVE_MSG_TRUNC = RECEIVE_MSG - 1
"""Numbers 12 and 11 of the same structure."""

RECORD = bytes((0, 0, 0x02, 0, 0, 0, 0, 0x20, 0, 0x04, 0x0C, 0x53, 0x6F, 0xA1, 0xFF, 0x01))
"""Memory, uncorrectable error, of sensor 0x53. The BMC puts number and time in."""


class DeviceFile:
    """Raw calls, whose errors are part of the answer."""

    def __init__(self, path: str, library: str) -> None:
        self._library: Any = ipmi._functions(library)
        self.descriptor = self._library.open(os.fsencode(path), os.O_RDWR | os.O_CLOEXEC)
        self.opened = self.descriptor >= 0 or errno.errorcode[ctypes.get_errno()]

    def send(
        self,
        netfn: int,
        command: int,
        data: bytes = b"",
        *,
        number: int = 1,
        kind: int = 0x0C,
        address_bytes: int = 8,
        channel: int = 0xF,
    ) -> str:
        address = ipmi._Address(kind, channel, 0)
        buffer = ctypes.create_string_buffer(data, max(1, len(data)))
        message = ipmi._IpmiMessage(netfn, command, len(data), ctypes.addressof(buffer))
        request = ipmi._IpmiRequest(ctypes.addressof(address), address_bytes, number, message)
        return self.ioctl(SEND_COMMAND, byref(request))

    def ioctl(self, call: int, argument: Any) -> str:
        ended = self._library.ioctl(self.descriptor, call, argument)
        return "ok" if ended >= 0 else errno.errorcode[ctypes.get_errno()]

    def is_readable(self, wait_s: float = 0) -> bool:
        poller = select.poll()
        poller.register(self.descriptor, select.POLLIN)
        return bool(poller.poll(wait_s * 1000))

    def receive(self, call: int = RECEIVE_MSG, *, size: int = 300, address_bytes: int = 36) -> str:
        address, buffer = ctypes.create_string_buffer(64), ctypes.create_string_buffer(300)
        received = ipmi._Received(
            addr=ctypes.addressof(address),
            addr_len=address_bytes,
            msg=ipmi._IpmiMessage(data_len=size, data=ctypes.addressof(buffer)),
        )
        ended = self.ioctl(call, byref(received))
        if ended not in ("ok", "EMSGSIZE") or (ended == "EMSGSIZE" and call == RECEIVE_MSG):
            return ended
        message = received.msg
        address_read = ipmi._Address.from_buffer(address)
        return (
            f"{ended} type {received.recv_type} number {received.msgid} netfn {message.netfn:02x}"
            f" command {message.cmd:02x} address {address_read.addr_type:02x}/{address_read.channel:x}"
            f"/{received.addr_len} data {buffer.raw[: message.data_len].hex(' ')}"
        )

    def ask(self, netfn: int, command: int, data: bytes = b"", number: int = 1) -> str:
        sent = self.send(netfn, command, data, number=number)
        return self.receive() if sent == "ok" and self.is_readable(10) else sent

    def close(self) -> None:
        self._library.close(self.descriptor)


def entry(number: int) -> bytes:
    return b"\0\0" + number.to_bytes(2, "little") + b"\0\xff"


def transcript(path: str, library: str = "") -> Iterator[str]:
    file = DeviceFile(path, library)
    yield f"open: {file.opened}"
    yield f"nothing asked: readable {file.is_readable()}, {file.receive()}"
    yield f"a wrong kind of address: {file.send(6, 1, kind=0x77)}"
    yield f"an address cut off: {file.send(6, 1, address_bytes=4)}"
    yield f"another channel: {file.send(6, 1, channel=3)}"
    yield f"too much data: {file.send(6, 1, bytes(300))}"
    yield f"another call: {file.ioctl(SEND_COMMAND & ~0xFF | 99, None)}"
    yield f"id: {_length_only(file.ask(6, 1, number=7))}"
    yield f"an unknown command: {file.ask(0x30, 0x94, bytes.fromhex('db0700400000000eff'))}"
    file.send(0x30, 0x94, number=9)
    file.is_readable(10)
    yield f"no room for the answer: {file.receive(size=0)}, then {file.receive()}"
    file.send(0x0A, 0x40, number=10)
    file.is_readable(10)
    yield f"no room for the address: {file.receive(address_bytes=4)}, readable {file.is_readable()}"
    yield f"cut off: {file.receive(RECEIVE_MSG_TRUNC, size=3)}, then {file.receive()}"
    file.send(0x30, 0x94, number=21)
    file.send(0x2C, 0x3E, number=22)
    time.sleep(1)
    yield f"two at once: {file.receive()}, then {file.receive()}, then {file.receive()}"
    other = DeviceFile(path, library)
    other.send(0x30, 0x94, number=31)
    other.is_readable(10)
    yield f"asked by another: readable {file.is_readable()}, {file.receive()}; {other.receive()}"
    other.close()
    yield from _log(file)
    file.close()


def _log(file: DeviceFile) -> Iterator[str]:
    def numbered() -> Iterator[int]:
        number = 100
        while True:
            yield (number := number + 1)

    numbers = numbered()
    yield f"the log's time: {_length_only(file.ask(0x0A, 0x48, number=next(numbers)))}"
    yield f"an empty log: {_data(file.ask(0x0A, 0x40, number=next(numbers)))[:14]}"
    for name, number in (("first", 0), ("last", 0xFFFF)):
        yield f"its {name} record: {_data(file.ask(0x0A, 0x43, entry(number), next(numbers)))}"
    for _ in range(3):
        yield f"a record is added: {_length_only(file.ask(0x0A, 0x44, RECORD, next(numbers)))}"
    yield f"three records: {_data(file.ask(0x0A, 0x40, number=next(numbers)))[:11]}"
    for name, number in (("first", 0), ("last", 0xFFFF)):
        answer = _data(file.ask(0x0A, 0x43, entry(number), next(numbers))).split()
        is_last = answer[1:3] == ["ff", "ff"]
        yield f"its {name} record: last {is_last}, kind {answer[5]}, {' '.join(answer[10:])}"
    yield f"a record that is not: {_data(file.ask(0x0A, 0x43, entry(0x7777), next(numbers)))}"
    yield f"too little asked: {_data(file.ask(0x0A, 0x43, b'', next(numbers)))}"


def _data(answer: str) -> str:
    return answer.partition(" data ")[2] or answer


def _length_only(answer: str) -> str:
    before, _, data = answer.partition(" data ")
    return f"{before} data {data[:2]} and {len(data.split()) - 1} bytes"


if __name__ == "__main__":
    for line in transcript(*sys.argv[1:]):
        print(line)
