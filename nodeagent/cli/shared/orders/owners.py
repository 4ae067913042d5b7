"""The owner of an order, in whose name it is given: the option, and who it is without one.

The name is the caller's own word. What he may do the daemon decides by who really calls.
"""

import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from nodeagent.cli.shared import completion

Command = TypeVar("Command", bound=Callable[..., Any])

LOGIN_UID: Final = Path("/proc/self/loginuid")
"""Who logged in to the session, also after su (pam_loginuid(8))."""

_NO_LOGIN: Final = 0xFFFF_FFFF


def owner_option(command: Command) -> Command:
    """``owner``: a name, "" where the daemon's own word for the caller is to stand."""
    return click.option(
        "--owner",
        default=person,
        envvar="NODEAGENT_OWNER",
        show_envvar=True,
        metavar="NAME",
        shell_complete=completion.owners,
        help="In whose name. Default: the person behind sudo or su, else the caller.",
    )(command)


def person() -> str:
    """The person behind sudo, else who logged in, else the user; "" where that is no name for a hold."""
    from nodeagent.api.request_fields import is_owner

    name = os.environ.get("SUDO_USER") or _name_of(_login_uid()) or _name_of(os.getuid())
    return name if is_owner(name) else ""


def _login_uid() -> int | None:
    try:
        uid = int(LOGIN_UID.read_text())
    except (OSError, ValueError):
        return None
    return None if uid == _NO_LOGIN else uid


def _name_of(uid: int | None) -> str:
    try:
        return "" if uid is None else pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""
