"""The configuration that the daemon last ran with: a copy, for a start at which the file itself is broken.

Blind is worse than poor: a node that is watched by yesterday's configuration, and says so, is better than one
that is not watched. There is a copy only where a service manager gives a folder for state ($STATE_DIRECTORY,
systemd.exec(5)): a person who starts the daemon by hand is there to read what is wrong.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.config.config import Config
from nodeagent.config.load import ConfigError, config_file, load_config
from nodeagent.system.service_folder import service_folder

FILE_NAME: Final = "last-good.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """``refused`` is what is wrong with the file: ``config`` is the last good one then. "" if it is sound."""

    config: Config
    refused: str = ""


def choose(path: Path | None, environ: Mapping[str, str]) -> Chosen:
    """As the file says, else as the daemon last ran. Raises ConfigError where there is neither."""
    try:
        return Chosen(config=load_config(path, environ))
    except ConfigError as refused:
        last = last_good(folder_of(environ))
        if last is None:
            raise
        return Chosen(config=last, refused=str(refused))


def last_good(folder: Path | None) -> Config | None:
    """As the copy in the folder says; None where there is none that can be read and used."""
    if folder is None:
        return None
    try:
        return load_config(folder / FILE_NAME, {})
    except ConfigError:
        return None


def keep(path: Path | None, environ: Mapping[str, str], config: Config) -> None:
    """Copies the file if it says ``config``, and not something else by now. Raises OSError."""
    folder, file = folder_of(environ), config_file(path, environ)
    if folder is None or last_good(folder) == config:
        return
    fresh = folder / f"{FILE_NAME}.fresh"
    fresh.write_bytes(b"" if file is None else file.read_bytes())
    with fresh.open("rb") as written:
        os.fsync(written.fileno())
    try:
        if load_config(fresh, {}) != config:
            return
    except ConfigError:
        return
    fresh.replace(folder / FILE_NAME)


def folder_of(environ: Mapping[str, str]) -> Path | None:
    """Where the copy lies, None where there is none."""
    return service_folder("STATE_DIRECTORY", environ)
