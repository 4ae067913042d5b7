"""Options that several commands share, and how the configuration and the socket follow from them.

Nothing is imported before it is needed: these are on every command's path.
"""

import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from nodeagent.cli.shared.errors import EXIT_CONFIG, EXIT_USAGE, Failure
from nodeagent.cli.shared.output import note

if TYPE_CHECKING:
    from nodeagent.config.config import Config

Command = TypeVar("Command", bound=Callable[..., Any])

STATE_DIRECTORY: Final = Path("/var/lib/nodeagent")
"""The state directory of the unit."""


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
        help="Configuration. Default: $NODEAGENT_CONFIG, else /etc/nodeagent/nodeagent.toml.",
    )(command)


def socket_option(command: Command) -> Command:
    """``socket`` and ``config_path``, to be given to ``query_socket`` or ``public_socket``."""
    option = click.option(
        "--socket",
        type=click.Path(path_type=Path),
        envvar="NODEAGENT_SOCKET",
        show_envvar=True,
        metavar="PATH",
        help="The daemon's socket. Default: as configured.",
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
        help="The daemon's control socket. Default: as configured.",
    )
    return option(config_option(command))


def read_config(path: Path | None) -> "Config":
    """Raises Failure with every problem of the file, exit status 78."""
    from nodeagent.config.load import ConfigError, load_config

    try:
        return load_config(path, os.environ)
    except ConfigError as error:
        raise Failure(str(error), EXIT_CONFIG) from error


def query_socket(socket: Path | None, config_path: Path | None) -> Path:
    """The socket for a command that asks and ends: the control socket where it is open to us, else the
    public.

    On the public one nobody is an operator, and readers may have taken every place. Raises Failure.
    """
    if socket:
        return _a_path(socket)
    agent = _daemons_config(config_path).agent
    return Path(agent.control_socket if os.access(agent.control_socket, os.W_OK) else agent.socket)


def public_socket(socket: Path | None, config_path: Path | None) -> Path:
    """The socket for a command that follows, so that it takes no place from orders. Raises Failure."""
    return _a_path(socket) if socket else Path(_daemons_config(config_path).agent.socket)


def control_socket(socket: Path | None, config_path: Path | None) -> Path:
    """Raises Failure."""
    return _a_path(socket) if socket else Path(_daemons_config(config_path).agent.control_socket)


def _a_path(socket: Path) -> Path:
    """What looks like HOST:PORT is no file's name that was mistyped."""
    name = str(socket)
    if ":" in name and "/" not in name and not socket.exists():
        what = "over TCP the daemon is asked by programs with a certificate of their own, not by this command"
        raise Failure(f"--socket takes a unix socket's path, not {name!r}; {what}", EXIT_USAGE)
    return socket


def _daemons_config(path: Path | None) -> "Config":
    """As the daemon has it: it keeps the last good one where the file is wrong, and says so if asked.

    Raises Failure as ``read_config``.
    """
    from nodeagent.config.last import FILE_NAME, folder_of, last_good

    try:
        return read_config(path)
    except Failure as refused:
        folder = folder_of(os.environ) or (STATE_DIRECTORY if _is_usual(path) else None)
        last = last_good(folder)
        if folder is None or last is None:
            raise
        note(f"nodeagent: {refused.message.splitlines()[0]}")
        note(f"nodeagent: using the last good configuration, {folder / FILE_NAME}, to find the daemon")
        return last


def _is_usual(path: Path | None) -> bool:
    """Whether it is the service's own file that is meant."""
    from nodeagent.config.load import DEFAULT_PATH, config_file

    return config_file(path, os.environ) == DEFAULT_PATH
