"""Options that several commands share: output, configuration, sockets and times.

Also how the configuration, the socket and the folders of tables follow from them. These are imported for
every command, so nothing that takes long is imported before it is needed.
"""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

import nodeagent
from nodeagent.cli.shared.errors import EXIT_CONFIG, EXIT_USAGE, CommandFailure
from nodeagent.cli.shared.output import note

if TYPE_CHECKING:
    from google.protobuf.timestamp_pb2 import Timestamp

    from nodeagent.config.config import Config

Command = TypeVar("Command", bound=Callable[..., Any])

STATE_DIRECTORY: Final = Path("/var/lib/nodeagent")
"""The state directory of the unit."""

CHECKOUT: Final = Path(nodeagent.__file__).parents[1] / "fault_codes"
"""The shipped tables of a source checkout."""

_TIME_FORMS: Final = "2026-01-02T03:04:05Z, 2026-01-02, or how long ago: 90m"
_LONGEST_NS: Final = 3650 * 86_400 * 10**9


def with_options(*each: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """A decorator that adds these options, in the order in which the help shows them."""

    def with_them(command: Command) -> Command:
        for option in reversed(each):
            command = option(command)
        return command

    return with_them


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


_SOCKET: Final = click.Path(readable=False, path_type=Path)
"""Whether it may be connected to is found out by connecting: that it may not is no wrong command line."""


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
        type=_SOCKET,
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
        type=_SOCKET,
        envvar="NODEAGENT_CONTROL_SOCKET",
        show_envvar=True,
        metavar="PATH",
        help="The daemon's control socket. Default: as configured.",
    )
    return option(config_option(command))


def read_config(path: Path | None) -> "Config":
    """Raises ``CommandFailure`` with every problem of the file, exit status 78."""
    from nodeagent.config.load import ConfigError, load_config

    try:
        return load_config(path, os.environ)
    except ConfigError as error:
        raise CommandFailure(str(error), EXIT_CONFIG) from error


def query_socket(socket: Path | None, config_path: Path | None) -> Path:
    """The socket for a command that asks once: the control socket where the caller may use it, else the
    public one.

    On the public one no caller is an operator, and readers may have taken every place. Raises
    ``CommandFailure``.
    """
    if socket:
        return _a_path(socket)
    agent = _daemons_config(config_path).agent
    return Path(agent.control_socket if os.access(agent.control_socket, os.W_OK) else agent.socket)


def public_socket(socket: Path | None, config_path: Path | None) -> Path:
    """The socket for a command that follows, so that it takes no place from orders. Raises
    ``CommandFailure``.
    """
    return _a_path(socket) if socket else Path(_daemons_config(config_path).agent.socket)


def control_socket(socket: Path | None, config_path: Path | None) -> Path:
    """Raises ``CommandFailure``."""
    return _a_path(socket) if socket else Path(_daemons_config(config_path).agent.control_socket)


def jobs_socket(config_path: Path | None) -> Path:
    """The socket of the supervisors of jobs, as the supervisors find it. Raises ``CommandFailure``."""
    from nodeagent.job.shell.link import SOCKET_VARIABLE

    named = os.environ.get(SOCKET_VARIABLE)
    return Path(named) if named else Path(_daemons_config(config_path).jobs_socket)


def _a_path(socket: Path) -> Path:
    """Raises ``CommandFailure`` for HOST:PORT, which is not the name of a file."""
    name = str(socket)
    if ":" in name and "/" not in name and not socket.exists():
        what = "over TCP the daemon is asked by programs with a certificate of their own, not by this command"
        raise CommandFailure(f"--socket takes a unix socket's path, not {name!r}; {what}", EXIT_USAGE)
    return socket


def _daemons_config(path: Path | None) -> "Config":
    """The configuration of the daemon. Where the file is wrong, the daemon keeps the last good one.

    Raises ``CommandFailure`` as ``read_config``.
    """
    from nodeagent.config.last import FILE_NAME, folder_of, last_good

    try:
        return read_config(path)
    except CommandFailure as refused:
        folder = folder_of(os.environ) or (STATE_DIRECTORY if _is_usual(path) else None)
        last = last_good(folder)
        if folder is None or last is None:
            raise
        note(f"nodeagent: {refused.message.splitlines()[0]}")
        note(f"nodeagent: using the last good configuration, {folder / FILE_NAME}, to find the daemon")
        return last


def _is_usual(path: Path | None) -> bool:
    """Whether it is the file of the service."""
    from nodeagent.config.load import DEFAULT_PATH, config_file

    return config_file(path, os.environ) == DEFAULT_PATH


def configured_folders(config: "Config") -> tuple[Path, ...]:
    """The folders of tables that are configured. A source checkout replaces a shipped one that is not
    installed.
    """
    return tuple(_or_checkout(Path(folder)) for folder in config.agent.tables)


def shipped_folder(config: "Config") -> Path:
    """The first configured folder, over which the site's own tables are laid."""
    return configured_folders(config)[0]


def _or_checkout(folder: Path) -> Path:
    from nodeagent.config.sections import AgentConfig

    installed = Path(AgentConfig().tables[0])
    return CHECKOUT if folder == installed and not folder.exists() and CHECKOUT.exists() else folder


def time_option(name: str, help_text: str) -> Callable[[Command], Command]:
    """A ``Timestamp`` or None, under the option's name."""
    return click.option(name, metavar="TIME", callback=_moment, help=f"{help_text}: {_TIME_FORMS}.")


def _moment(_context: click.Context, _parameter: click.Parameter, text: str | None) -> "Timestamp | None":
    return None if text is None else moment(text, time.time_ns())


def moment(text: str, now_ns: int) -> "Timestamp":
    """The time that the text names, in UTC where it names no zone. Raises ``click.BadParameter``."""
    from google.protobuf.timestamp_pb2 import Timestamp

    from nodeagent.toml.values import parse_duration_ns

    stamp = Timestamp()
    try:
        ago_ns = parse_duration_ns(text)
    except ValueError:
        stamp.FromDatetime(_named(text))
    else:
        stamp.FromNanoseconds(max(0, now_ns - ago_ns))
    return stamp


def _named(text: str) -> datetime:
    try:
        named = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a time: {_TIME_FORMS}") from error
    return named.replace(tzinfo=UTC) if named.tzinfo is None else named


def length_option(help_text: str) -> Callable[[Command], Command]:
    """``--for``, as ``duration``: a timedelta or None."""
    return click.option("--for", "duration", metavar="DURATION", callback=_length, help=help_text)


def until_option(help_text: str) -> Callable[[Command], Command]:
    """``--for``, as ``until``: the time at which it ends, or None."""
    return click.option("--for", "until", metavar="DURATION", callback=_until, help=help_text)


def _until(context: click.Context, parameter: click.Parameter, text: str | None) -> datetime | None:
    length = _length(context, parameter, text)
    return None if length is None else datetime.now(UTC) + length


def _length(_context: click.Context, _parameter: click.Parameter, text: str | None) -> timedelta | None:
    from nodeagent.toml.values import parse_duration_ns

    if text is None:
        return None
    try:
        length_ns = parse_duration_ns(text)
    except ValueError as error:
        wanted = "a whole number and one of ms, s, m, h, d, such as 90m"
        raise click.BadParameter(f"{text!r} is not a duration: {wanted}") from error
    if not 0 < length_ns <= _LONGEST_NS:
        raise click.BadParameter("must be longer than 0" if not length_ns else "must be 3650d at most")
    return timedelta(microseconds=length_ns // 1000)
