"""Ends the processes of a job that may be ended: SIGTERM, a grace, SIGKILL, each by a handle of its own.

It ends no process but those named with their start time, and none of their children: a job's own launcher
sees to these, or they hold a device themselves and are named too.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from nodeagent.drivers.holders import holder_of
from nodeagent.reset.folder import Process

KILL_WAIT_S: Final = 5.0
"""A process that is killed is gone at once, unless it hangs in the kernel."""


def end(
    processes: Iterable[Process], grace_s: float, procfs: Path, step: Callable[[str], None]
) -> tuple[Process, ...]:
    """Those that are there still; empty where all have gone. ``step`` hears of each signal."""
    with ExitStack() as handles:
        living = {}
        for process in processes:
            descriptor = _handle_of(process, procfs)
            if descriptor is not None:
                handles.callback(os.close, descriptor)
                living[descriptor] = process
        for number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, KILL_WAIT_S)):
            if living:
                named = ", ".join(f"{process.command} ({process.pid})" for process in living.values())
                step(f"{number.name} to {named}")
            for descriptor in living:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, number)
            for descriptor in _gone_within(wait_s, living):
                del living[descriptor]
        return tuple(living.values())


def _handle_of(process: Process, procfs: Path) -> int | None:
    """None where it has gone, and its pid is perhaps another's."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    found = holder_of(procfs, process.pid)
    if found is not None and found.start_time == process.start_time:
        return descriptor
    os.close(descriptor)
    return None


def _gone_within(wait_s: float, descriptors: Iterable[int]) -> list[int]:
    """A handle is readable once its process has ended."""
    poll, left = select.poll(), set(descriptors)
    for descriptor in left:
        poll.register(descriptor, select.POLLIN)
    gone: list[int] = []
    until_s = time.monotonic() + wait_s
    while left and (remaining_s := until_s - time.monotonic()) > 0:
        for descriptor, _ in poll.poll(remaining_s * 1000):
            poll.unregister(descriptor)
            left.remove(descriptor)
            gone.append(descriptor)
    return gone
