"""Ends the processes of a job that may be ended: SIGTERM, a grace, SIGKILL, each by a handle of its own.

It ends no process but those that are named with their start time and hold one of the devices now, as the
vendor's library lists them; and of these only those of a job. What belongs to none, such as a service of the
node, is nobody's to end, and neither is what runs where this process runs itself. Their children are let
alone: a job's own launcher sees to these, or they hold a device themselves and are named too.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from nodeagent.drivers.shared.holders import holder_of
from nodeagent.drivers.shared.resetting import ResetRefused
from nodeagent.reset_unit.exchange.request import Process
from nodeagent.wire import Holder

KILL_WAIT_S: Final = 5.0
"""A process that is killed is gone at once, unless it hangs in the kernel."""


def those_that_may_be(
    named: Collection[Process], holders: Mapping[str, tuple[Holder, ...] | None], procfs: Path
) -> tuple[Holder, ...]:
    """The processes on the devices that are among the named, each once; a named one that holds none is none
    of them.

    Raises ``ResetRefused`` where one of them may not be ended, or who holds a device is not known.
    """
    meant = {(process.pid, process.start_time) for process in named}
    own = holder_of(procfs, os.getpid())
    found: dict[int, Holder] = {}
    for device, listed in holders.items():
        if listed is None:
            raise ResetRefused(f"who holds {device} is not known")
        for holder in listed:
            if (holder.pid, holder.start_time) not in meant:
                continue
            if not holder.job or (own is not None and holder.job == own.job):
                raise ResetRefused(
                    f"{holder.command} (pid {holder.pid}) on {device} is of no job that may be ended"
                )
            found[holder.pid] = holder
    return tuple(found.values())


def end(
    processes: Iterable[Holder], grace_s: float, procfs: Path, step: Callable[[str], None]
) -> tuple[Holder, ...]:
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


def _handle_of(process: Holder, procfs: Path) -> int | None:
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
