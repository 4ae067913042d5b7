"""Reads the policy files that the user names, and joins them with the settings of the site, the environment
and the command line. It decides nothing.
"""

import re
from collections.abc import Mapping
from typing import Final

from nodeagent.job.lines import Welcome
from nodeagent.job.policy import policy
from nodeagent.job.policy.arguments import Arguments
from nodeagent.job.policy.policy import Resolved, Setting
from nodeagent.job.shell.disk import regular_files

_MAX_BYTES: Final = 1 << 20
_SLURM_CONF: Final = "/etc/slurm/slurm.conf"
_KILL_WAIT: Final = re.compile(r"^\s*KillWait\s*=\s*(\d+)", re.IGNORECASE | re.MULTILINE)
_SHIPPED_KILL_WAIT_S: Final = 30.0
"""slurm.conf(5), KillWait."""


class Unreadable(Exception):
    """A file that the user names cannot be read. The text names it and says why."""


def settle(given: Arguments, environment: Mapping[str, str], welcome: Welcome | None) -> Resolved:
    """``welcome`` None: the daemon does not answer, so there is nothing that the site has set.

    Raises ``Unreadable``, and ``policy.PolicyError``.
    """
    return policy.resolve(
        defaults=welcome.defaults if welcome is not None else {},
        files=(
            *_settings("--annotations", given.annotations_file),
            *_settings("--policy", given.policy_file, own=True),
        ),
        environ=environment,
        flags=given.flags,
        limits=welcome.limits if welcome is not None else {},
        in_step=given.in_step > 0,
        kill_wait_s=kill_wait_s(environment),
    )


def kill_wait_s(environment: Mapping[str, str]) -> float | None:
    """How long Slurm waits between TERM and KILL; None without Slurm, and where its file cannot be read."""
    if "SLURM_JOB_ID" not in environment:
        return None
    try:
        text = _read(environment.get("SLURM_CONF") or _SLURM_CONF)
    except OSError:
        return None
    found = _KILL_WAIT.search(text)
    return _SHIPPED_KILL_WAIT_S if found is None else float(found[1])


def _settings(flag: str, path: str, *, own: bool = False) -> tuple[Setting, ...]:
    """``own``: the file is for us alone, so that a key that is none of ours is misspelt."""
    if not path:
        return ()
    try:
        return policy.read_file(_read(path), path, own=own)
    except OSError as error:
        raise Unreadable(f"{flag}: {path}: {error.strerror}") from error


def _read(path: str) -> str:
    return regular_files.read(path, _MAX_BYTES, is_own=False).decode("utf-8", "replace")
