"""The configuration with which the daemon last ran: a copy, used when the file is wrong at a start.

A node that is watched with an older configuration is safer than a node that is not watched. The copy is made
only under a service manager that gives a folder for state ($STATE_DIRECTORY, systemd.exec(5)). A daemon that
is started by hand reports the error at once.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeagent.config.config import Config
from nodeagent.config.layers import Layers
from nodeagent.config.load import ConfigError, load_config, read_alone, read_config
from nodeagent.system.directories import service_folder
from nodeagent.toml.writing import key_lines, key_text

FILE_NAME: Final = "last-good.toml"
HEAD: Final = "What the daemon last ran with, of"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """``refused`` is what is wrong with the file: ``config`` is the last good one then. "" if it is sound."""

    config: Config
    refused: str = ""


def choose(path: Path | None, environ: Mapping[str, str]) -> Chosen:
    """The configuration in the file, else the last one of the daemon. Raises ConfigError without either."""
    try:
        return Chosen(config=load_config(path, environ))
    except ConfigError as refused:
        last = last_good(folder_of(environ))
        if last is None:
            raise
        return Chosen(config=last, refused=str(refused))


def last_good(folder: Path | None) -> Config | None:
    """The copy in the folder; None if none can be read and used."""
    if folder is None:
        return None
    try:
        return read_alone(folder / FILE_NAME).config
    except ConfigError:
        return None


def keep(path: Path | None, environ: Mapping[str, str], config: Config) -> None:
    """Copies the merged files if they still are ``config``.

    Raises OSError.
    """
    folder = folder_of(environ)
    if folder is None or last_good(folder) == config:
        return
    try:
        read = read_config(path, environ)
    except ConfigError:
        return
    if read.config != config:
        return
    fresh = folder / f"{FILE_NAME}.fresh"
    with fresh.open("w", encoding="utf-8") as written:
        written.write(_as_one_file(read.layers))
        written.flush()
        os.fsync(written.fileno())
    fresh.replace(folder / FILE_NAME)


def _as_one_file(layers: Layers) -> str:
    """With a table for each section."""
    head = "".join(f"# {HEAD} {source.file}\n" for source in layers.sources)
    return head + "".join(
        f"\n[{key_text(name)}]\n{key_lines(section)}" for name, section in layers.data().items()
    )


def folder_of(environ: Mapping[str, str]) -> Path | None:
    """Where the copy lies, None where there is none."""
    return service_folder("STATE_DIRECTORY", environ)
