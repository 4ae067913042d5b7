"""NPUs that PCI lists and the library does not: which they are.

The driver shows a process once which chips there are (ascend_hal/pbl/uda/uda_user_kernel_api.c,
``uda_init``), and the library lists those of them that had started when it was initialised, for as long as
the process lives. One that comes later, after the machine, a reset or a rescan of PCI, is found by another.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from nodeagent.drivers.api import Unavailable
from nodeagent.drivers.ascend.library.loading import NotLoaded
from nodeagent.drivers.shared.pci import PROCESSING_ACCELERATOR, Bus, PciFunction
from nodeagent.wire import Missing

KERNEL_DRIVER: Final = "devdrv_device_driver"
"""The vendor's, as sysfs names it."""
OURS_OR_NONE: Final = ("", KERNEL_DRIVER)

DEVICE_NODE: Final = Path("/dev/davinci_manager")
"""A machine whose driver has found NPUs has it, also where they are on no PCI bus."""


def listed_by_pci(bus: Bus, before: Sequence[PciFunction] = ()) -> Sequence[PciFunction]:
    """The NPUs that PCI lists and those that it listed ``before``, but for virtual ones, and for those that
    another driver has taken, such as vfio-pci for a virtual machine.

    Raises ``Unavailable``: what cannot be counted cannot be missed.
    """
    try:
        found = bus.functions((PROCESSING_ACCELERATOR,))
        # One that no driver has is missing all the same.
        ours = [each for each in found if not each.virtual and bus.driver(each.address) in OURS_OR_NONE]
    except OSError as error:
        raise Unavailable(f"what PCI lists cannot be read: {error}", errno=error.errno or 0) from error
    here = {function.address for function in found}
    gone = [function for function in before if function.address not in here]
    return sorted([*ours, *gone], key=lambda function: function.address)


def not_opened(error: Unavailable, listed: Sequence[PciFunction]) -> Unavailable:
    """What it means that the library cannot be opened.

    Without it nothing shows the NPUs that PCI lists: each of them is missing. One that is loaded and does not
    start says nothing of any; but where there are none it never starts, and may be installed all the same.
    """
    if not listed:
        is_absent = error.absent or not (isinstance(error, NotLoaded) or DEVICE_NODE.exists())
        return Unavailable(str(error), errno=error.errno, absent=is_absent)
    if not isinstance(error, NotLoaded):
        return error
    shown = f"PCI lists {len(listed)} NPUs, but {error}"
    missing = [Missing(device=function.address, reason=shown) for function in listed]
    return Unavailable(shown, errno=error.errno, missing=missing)


def missing(listed: Sequence[PciFunction], addresses: Collection[str]) -> tuple[Missing, ...]:
    """The missing chips, by address, which is the name of a slot. ``addresses``: of the chips that the
    library shows, "" of one that cannot be asked where it sits.
    """
    unplaced = sum(1 for address in addresses if not address)
    lost = [function.address for function in listed if function.address not in addresses]
    if len(lost) <= unplaced:
        return ()
    reason = f"PCI lists {len(listed)} NPUs, the library {len(addresses)}, and not this one"
    if unplaced:
        reason += f", unless it is one of {unplaced} that cannot be asked where they sit"
    return tuple(Missing(device=address, reason=reason) for address in lost)
