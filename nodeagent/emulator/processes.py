"""The processes on an emulated chip, as the libraries list them. None is started or ended here.

A real process is on the chip until it has ended: until its last thread has ended, which closes all that it
had open. A made-up one stays until it is removed.
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
