"""What root's configuration allows: read anew for each reset, from root's own file and from nowhere else.

A file that others could have written allows nothing. It resets nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nodeagent.config.config import Config
from nodeagent.config.drivers import VendorConfig
from nodeagent.config.load import DEFAULT_PATH, PATH_VARIABLE, ConfigError, load_config
from nodeagent.core.model import ResetMode
from nodeagent.drivers.shared.resetting import ResetRefused
from nodeagent.reset_unit.exchange import trusted
from nodeagent.vendors import RESETS


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The configuration that allows it; ``section`` is the vendor's."""

    config: Config
    section: VendorConfig


def now(vendor: str, path: Path | None, environ: Mapping[str, str], *, once: bool) -> Allowed:
    """What is allowed now by the file at ``path``, else at ``$NODEAGENT_CONFIG``, else at the usual place.

    ``once``: an operator ordered this one reset, as the daemon says. The mode, which is about what is done by
    itself, then allows it; what forbids resets does not. Raises ``ResetRefused`` where the vendor's devices
    are not to be reset.
    """
    file = path or Path(environ.get(PATH_VARIABLE) or DEFAULT_PATH)
    config = _read(file)
    section = config.drivers.get(vendor)
    if vendor not in RESETS or not isinstance(section, VendorConfig):
        raise ResetRefused(f"nodeagent cannot reset a device of {vendor}")
    mode = config.reset.of_vendor(vendor)
    if mode not in (ResetMode.ASK, ResetMode.ON) and not once:
        raise ResetRefused(f"reset.mode is {mode} for {vendor} in {file}")
    if why := config.reset.forbidden():
        raise ResetRefused(f"resets are forbidden: {why}")
    return Allowed(config=config, section=section)


def _read(file: Path) -> Config:
    """Raises ``ResetRefused``."""
    try:
        trusted.check(file)
        return load_config(file, {})
    except trusted.Untrusted as error:
        raise ResetRefused(f"the configuration is not root's alone: {error}") from error
    except OSError as error:
        raise ResetRefused(f"the configuration cannot be read: {file}: {error.strerror}") from error
    except ConfigError as error:
        raise ResetRefused(f"the configuration cannot be used: {error.problems[0]}") from error
