"""Whether a process has ended: once its last thread has, which lets go of all that it had open.

Nobody has to wait for it as its parent. It ends no process.

The processes that hold a chip, as the libraries list them. It starts and ends none.

A real one is on the chip until it has ended; one that a test has made up stays until it is taken away.
"""

import os
import select
from typing import Any

from nodeagent.emulator.layout import LIMITS, FieldError


def has_ended(process: int, within_ms: int | None = 0) -> bool:
    """Also true of one that there is not. Waits for the end so long, with None until it comes."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        return bool(poller.poll(within_ms))
    finally:
        os.close(descriptor)


def add(chip: Any, process: int, memory_bytes: int, *, is_real: bool) -> None:
    """The caller holds the lock of the state. Raises ``FieldError``."""
    if is_real and has_ended(process):
        raise FieldError(f"process: {process} does not run")
    place = int(chip.process_count)
    if place == LIMITS["PROCESSES"]:
        raise FieldError(f"{place} processes hold it already")
    chip.process_ids[place] = process
    chip.process_memory_bytes[place] = memory_bytes
    chip.process_is_real[place] = int(is_real)
    chip.process_count = place + 1


def on(chip: Any) -> list[int]:
    """Those that have not ended."""
    listed = zip(chip.process_ids, chip.process_is_real, range(chip.process_count), strict=False)
    return [process for process, is_real, _ in listed if not (is_real and has_ended(process))]
