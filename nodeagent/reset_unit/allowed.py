"""What root's configuration allows: read anew for each reset, from root's own files and from nowhere else.

A file that others could have written allows nothing. It resets nothing.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nodeagent.config.config import Config
from nodeagent.config.drivers import VendorConfig
from nodeagent.config.drop_ins import drop_in_folder
from nodeagent.config.layers import Layers
from nodeagent.config.load import DEFAULT_PATH, ConfigError, Read, config_file, config_files, read_config
from nodeagent.core.model import ResetMode
from nodeagent.drivers.shared.resetting import ResetRefused
from nodeagent.reset_unit.exchange import trusted
from nodeagent.toml.problem import Problems
from nodeagent.vendors import RESETS


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The configuration that allows it; ``section`` is the vendor's."""

    config: Config
    section: VendorConfig


def now(vendor: str, path: Path | None, environ: Mapping[str, str], *, once: bool) -> Allowed:
    """What is allowed now by the file at ``path``, else at ``$NODEAGENT_CONFIG``, else at the usual place.

    Its drop-ins count as it does. ``once``: an operator ordered this one reset, as the daemon says. The mode,
    which is about what is done by itself, then allows it; what forbids resets does not. Raises
    ``ResetRefused`` where the vendor's devices are not to be reset.
    """
    read = _read(path, environ)
    config = read.config
    section = config.drivers.get(vendor)
    if vendor not in RESETS or not isinstance(section, VendorConfig):
        raise ResetRefused(f"nodeagent cannot reset a device of {vendor}")
    mode = config.reset.of_vendor(vendor)
    if mode not in (ResetMode.ASK, ResetMode.ON) and not once:
        file = _file_of_the_mode(vendor, read.layers) or config_file(path, environ) or DEFAULT_PATH
        raise ResetRefused(f"reset.mode is {mode} for {vendor} in {file}")
    if why := config.reset.forbidden():
        raise ResetRefused(f"resets are forbidden: {why}")
    return Allowed(config=config, section=section)


def _read(path: Path | None, environ: Mapping[str, str]) -> Read:
    """Raises ``ResetRefused``."""
    try:
        files = config_files(path, environ, Problems().add)  # read_config says what is wrong with the folder
        file = config_file(path, environ) or DEFAULT_PATH
        # A folder that others may write could hold another file in a moment.
        folder = drop_in_folder(file)
        for each in (*(files or [file]), *([folder] if os.path.lexists(folder) else [])):
            trusted.check(each)
        return read_config(path, environ)
    except trusted.Untrusted as error:
        raise ResetRefused(f"the configuration is not root's alone: {error}") from error
    except OSError as error:
        place = f"{error.filename}: {error.strerror}"
        raise ResetRefused(f"the configuration cannot be read: {place}") from error
    except ConfigError as error:
        raise ResetRefused(f"the configuration cannot be used: {error.problems[0]}") from error


def _file_of_the_mode(vendor: str, layers: Layers) -> str | None:
    return layers.file_of(("reset", "modes", vendor)) or layers.file_of(("reset", "mode"))
