"""Records in a traced process which files of the project ran for an event. It imports nothing of it.

A line in a ``.pth`` file starts it when the interpreter starts, before any other code, so that it sees every
thread. Two spans of equal length decide what counts; the tool sets them in a mapped file (``Span``):

- In the idle span nothing happens. The functions that are called in it run at each tick, event or not.
- In the span of the event a function counts that was not called in the idle span. So do the functions on the
  stack that led to it, if they were called in this span too, and the functions that it calls.

What runs while a module is imported does not count. A process that the event starts has no idle span: every
function that it calls after its imports counts. Threads that a C library made are not seen.
"""

import json
import mmap
import os
import sys
import threading
import time
from enum import IntEnum
from pathlib import Path
from types import CodeType, FrameType

SPAN_FILE = "span"
RECORD_FILE = "record"

_BODY_OF_FUNCTION = 0x1
"""CO_OPTIMIZED of a code object: bodies of modules and classes lack it (the module inspect)."""


class Span(IntEnum):
    """The byte in ``SPAN_FILE``."""

    NONE = 0
    IDLE = 1
    EVENT = 2


def record(folder: str, sources: str) -> None:
    """Record the files below ``sources`` into ``folder``, from now to the end of this process."""
    with Path(folder, SPAN_FILE).open("rb") as file:
        span = mmap.mmap(file.fileno(), 1, access=mmap.ACCESS_READ)
    recorder = _Recorder(span, Path(folder, RECORD_FILE), f"{sources}{os.sep}")
    os.register_at_fork(after_in_child=recorder.begin_process)
    threading.setprofile(recorder.observe)
    sys.setprofile(recorder.observe)


class _Recorder:
    def __init__(self, span: mmap.mmap, record_path: Path, sources: str) -> None:
        self._span = span
        self._record_path = record_path
        self._sources = sources
        self._idle: set[CodeType] = set()
        self._called: set[CodeType] = set()
        self._found: dict[str, int] = {}
        self._process_written = False

    def begin_process(self) -> None:
        """After a fork: what the parent has found is the parent's."""
        self._found = {}
        self._process_written = False

    def observe(self, frame: FrameType, event: str, _: object) -> None:
        """The profile function of every thread (``sys.setprofile``)."""
        span = self._span[0]
        if span == Span.NONE or event != "call" or not self._is_function_of_project(frame):
            return
        code = frame.f_code
        if span == Span.IDLE:
            self._idle.add(code)
            return
        if code in self._called and code.co_filename in self._found:
            return
        stack = self._stack(frame)
        if stack is None:
            return
        self._called.add(code)
        if any(each not in self._idle for each in stack):
            self._add(stack)

    def _stack(self, frame: FrameType) -> list[CodeType] | None:
        """This function and its callers that were called in this span too, outermost first.

        None while a module is being imported.
        """
        stack = [frame.f_code]
        caller = frame.f_back
        while caller is not None:
            code = caller.f_code
            if code.co_name == "<module>" and caller.f_globals.get("__name__") != "__main__":
                return None
            if code in self._called:
                stack.append(code)
            caller = caller.f_back
        return stack[::-1]

    def _is_function_of_project(self, frame: FrameType) -> bool:
        code = frame.f_code
        return bool(code.co_flags & _BODY_OF_FUNCTION) and code.co_filename.startswith(self._sources)

    def _add(self, stack: list[CodeType]) -> None:
        """The first use of each file goes to the disk at once: the process may be killed."""
        new = [each.co_filename for each in stack if each.co_filename not in self._found]
        if not new:
            return
        at_ns = time.monotonic_ns()
        lines: list[dict[str, object]] = []
        if not self._process_written:
            self._process_written = True
            lines.append({"pid": os.getpid(), "command": sys.orig_argv})
        for path in dict.fromkeys(new):
            self._found[path] = at_ns
            lines.append({"pid": os.getpid(), "at_ns": at_ns, "file": path.removeprefix(self._sources)})
        # In one write, as other processes append to it too. Opened each time: the program may close a
        # descriptor that stays open, and get its number for another file.
        descriptor = os.open(self._record_path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(descriptor, "".join(json.dumps(each) + "\n" for each in lines).encode())
        finally:
            os.close(descriptor)
