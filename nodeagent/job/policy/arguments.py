"""The command line of ``job run``: options, then the command. It checks no value of the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argparse import ArgumentParser


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """``flags`` are policy keys given on the command line, as texts. ``in_step``: the number of the run that
    is made on several nodes at once; 0: it is made on this one alone.
    """

    command: tuple[str, ...]
    job: str = ""
    state: str = ""
    policy_file: str = ""
    annotations_file: str = ""
    progress: str = ""
    logs: str = ""
    logs_kept: int = 20
    errors: str = ""
    socket: str = ""
    foreground: bool = False
    core: bool = False
    error_hook: bool = True
    period_s: float = 10.0
    in_step: int = 0
    flags: Mapping[str, str] = field(default_factory=dict)


def parse(argv: Sequence[str]) -> Arguments:
    """Raises ``SystemExit``, after it has printed why."""
    if len(argv) > 1 and argv[0] == "--":
        return Arguments(command=tuple(argv[1:]))
    from nodeagent.job.policy.options import run_parser

    options = run_parser()
    return arguments_of(vars(options.parse_args(argv)), options)


def arguments_of(given: dict[str, Any], options: ArgumentParser) -> Arguments:
    """``given`` is what ``options`` has read, and holds nothing but options of ``job run``."""
    command = given.pop("command", [])
    if command[:1] == ["--"]:
        del command[0]
    if not command:
        options.error("no COMMAND to run")
    if given.get("logs") and given.get("errors"):
        options.error("--errors: the files of --logs have the standard error already; give one of the two")
    own = {each.name: given.pop(each.name) for each in fields(Arguments) if each.name in given}
    flags = {name: ",".join(value) if isinstance(value, list) else value for name, value in given.items()}
    return Arguments(command=tuple(command), flags=flags, **own)
