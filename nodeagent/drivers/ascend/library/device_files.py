"""Which device files of the NPUs keep this process out, where the library only says "inner error".

Asked after the library has failed, by who takes none of them by opening it (``namespace``). It closes them at
once, and changes nothing.
"""

from pathlib import Path

from nodeagent.drivers.api import Unavailable
from nodeagent.drivers.ascend.library.loading import NotLoaded
from nodeagent.drivers.shared.denied import denials

FOR_ALL = ("davinci_manager", "hisi_hdc", "devmm_svm")


def explained(error: Unavailable, devices: Path = Path("/dev")) -> Unavailable:
    """The same failure, with what denies the devices that are there."""
    present = [path for path in (*(devices / name for name in FOR_ALL), *_chips(devices)) if path.exists()]
    if isinstance(error, NotLoaded) or not (denied := denials(present)):
        return error
    return Unavailable(f"{error}; {denied}", errno=error.errno, absent=error.absent)


def _chips(devices: Path) -> list[Path]:
    """The first says it for all: they are given to their group together."""
    return sorted(devices.glob("davinci[0-9]*"))[:1]
