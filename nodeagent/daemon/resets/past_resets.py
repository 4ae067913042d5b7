"""What a start learns from the record of resets: resets that a lost store has forgotten count all the same.

It reads, and judges nothing. The processes of resets write the record, and hold to their limits by it
whatever the daemon believes.
"""

import logging
from collections import defaultdict
from pathlib import Path
from typing import Final

from nodeagent.core.model import NODE, ResetsRecorded
from nodeagent.core.state.registry import PROVISIONAL
from nodeagent.reset_unit.exchange import record
from nodeagent.store.disk.thread import within

log = logging.getLogger(__name__)

READ_LIMIT_S: Final = 2.0
"""A disk that hangs holds up no start."""


async def resets_recorded(folder: Path, rule_ns: int) -> ResetsRecorded:
    """As the record in the folder has them; none where it cannot be read, and that is logged."""
    try:
        past = await within(READ_LIMIT_S, "record", lambda: record.resets_of_late(folder))
    except (OSError, ValueError) as error:
        log.warning(
            "the record of resets cannot be read, so the daemon does not count earlier resets: %s", error
        )
        past = ()
    found: defaultdict[str, list[int]] = defaultdict(list)
    for each in past:
        at_ns = rule_ns - each.ago_ns
        found[NODE].append(at_ns)
        for device in each.devices:
            found[device.identity or f"{PROVISIONAL}{device.pci or device.name}"].append(at_ns)
    return ResetsRecorded(resets_ns=tuple((device, tuple(times)) for device, times in found.items()))
