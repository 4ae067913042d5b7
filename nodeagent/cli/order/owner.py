"""The owner in whose name an order is given: the option, and the owner without one.

The caller claims this name. What the caller may do depends on who really calls, which the daemon knows.
"""

import os
import pwd
from pathlib import Path
from typing import Final

import click

from nodeagent.cli.shared import completion
from nodeagent.cli.shared.options import Command

LOGIN_UID: Final = Path("/proc/self/loginuid")
"""The user who logged in to the session, also after su (pam_loginuid(8))."""

_NO_LOGIN: Final = 0xFFFF_FFFF


def owner_option(command: Command) -> Command:
    """``owner``: a name; "": the daemon's own name for the caller is used."""
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
    """The person behind sudo, else the one that logged in, else the user; "" where that cannot own a hold."""
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
