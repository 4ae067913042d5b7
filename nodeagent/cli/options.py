"""Options that several commands share, and how the configuration and the socket follow from them.

Nothing is imported before it is needed: these are on every command's path.
"""

import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nodeagent.cli.failure import EXIT_CONFIG, Failure

if TYPE_CHECKING:
    from nodeagent.config import Config

Command = TypeVar("Command", bound=Callable[..., Any])


class Output(StrEnum):
    TEXT = "text"
    JSON = "json"


def output_option(command: Command) -> Command:
    """``output``: an ``Output``."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(list(Output), case_sensitive=False),
        default=Output.TEXT,
        envvar="NODEAGENT_OUTPUT",
        show_envvar=True,
        help="text, or json for programs.",
    )(command)


def config_option(command: Command) -> Command:
    """``config_path``: a Path or None, to be given to ``read_config``."""
    return click.option(
        "--config",
        "config_path",
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="Configuration; else $NODEAGENT_CONFIG, else /etc/nodeagent/nodeagent.toml.",
    )(command)


def socket_option(command: Command) -> Command:
    """``socket`` and ``config_path``, to be given to ``public_socket``."""
    option = click.option(
        "--socket",
        type=click.Path(path_type=Path),
        envvar="NODEAGENT_SOCKET",
        show_envvar=True,
        metavar="PATH",
        help="The daemon's socket; else as configured.",
    )
    return option(config_option(command))


def control_socket_option(command: Command) -> Command:
    """``socket`` and ``config_path``, to be given to ``control_socket``."""
    option = click.option(
        "--socket",
        type=click.Path(path_type=Path),
        envvar="NODEAGENT_CONTROL_SOCKET",
        show_envvar=True,
        metavar="PATH",
        help="The daemon's control socket; else as configured.",
    )
    return option(config_option(command))


def read_config(path: Path | None) -> "Config":
    """Raises Failure with every problem of the file, exit status 78."""
    from nodeagent.config import ConfigError, load_config

    try:
        return load_config(path, os.environ)
    except ConfigError as error:
        raise Failure(str(error), EXIT_CONFIG) from error


def public_socket(socket: Path | None, config_path: Path | None) -> Path:
    return socket or Path(read_config(config_path).agent.socket)


def control_socket(socket: Path | None, config_path: Path | None) -> Path:
    return socket or Path(read_config(config_path).agent.control_socket)
