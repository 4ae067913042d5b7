"""Storage that does not answer, as a real file system: a FUSE server that takes requests and answers none.

A process that asks it waits in the kernel without end, and KILL does not end it, as on a hard mount of an NFS
server that is gone. Needs root.
"""

import ctypes
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

FUSE: Final = Path("/dev/fuse")
_INIT: Final = 26
_IN_HEADER: Final = struct.Struct("<IIQQIIII")
_OUT_HEADER: Final = struct.Struct("<IiQ")
_INIT_OUT: Final = struct.Struct("<IIIIHHIIHHII24x")
"""linux/fuse.h: fuse_in_header, fuse_out_header, fuse_init_out of 7.36."""

_MAX_REQUEST_BYTES: Final = 1 << 17
_MNT_FORCE_DETACH: Final = 1 | 2


@contextmanager
def hung_storage(folder: Path) -> Iterator[Path]:
    """Answers no more until the end of the block; then every waiting call fails."""
    folder.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    opened = os.open(FUSE, os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={opened},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    if libc.mount(b"hung", os.fsencode(folder), b"fuse", 0, options.encode()) != 0:
        os.close(opened)
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    threading.Thread(target=_answer_only_the_first, args=(opened,), daemon=True).start()
    try:
        yield folder
    finally:
        libc.umount2(os.fsencode(folder), _MNT_FORCE_DETACH)
        os.close(opened)


def _answer_only_the_first(opened: int) -> None:
    while True:
        try:
            request = os.read(opened, _MAX_REQUEST_BYTES)
        except OSError:  # it was unmounted
            return
        _, operation, unique, *_ = _IN_HEADER.unpack_from(request)
        if operation == _INIT:
            answer = _INIT_OUT.pack(7, 31, 4096, 0, 12, 9, 4096, 1, 1, 0, 0, 0)
            os.write(opened, _OUT_HEADER.pack(_OUT_HEADER.size + len(answer), 0, unique) + answer)
