"""What a shell offers for a word: devices, codes, holds, jobs, consumers and actions of the running daemon.

It is quick and silent: a daemon that does not answer in half a second is not asked again, and errors are not
reported. Names may come from hostile sources, and a shell would act on some of them: only words that no shell
treats specially are offered. Whether a word is valid the command decides.
"""

import contextlib
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from nodeagent.cli.shared.printable import printable

if TYPE_CHECKING:
    from nodeagent.client import Client

VARIABLE: Final = "_NODEAGENT_COMPLETE"
"""By which a shell's script asks; its value is the shell, such as ``bash_complete`` (click's protocol)."""

LIMIT_S: Final = 0.5
MOST_SHOWN: Final = 60
"""Characters of the text that is shown with a word."""

_PLAIN: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_@%+=:,./#-]*")
_CODE_OF_ROW: Final = re.compile(r"""^\[codes\.(?:"([^"\\\n]+)"|([A-Za-z0-9_-]+))\]""", re.MULTILINE)

Words = Iterable[tuple[str, str]]
"""Pairs of a word and the text that is shown with it."""

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]


def complete(commands: Callable[..., Any]) -> None:
    """Answers the shell, and ends. Where anything fails, nothing is offered."""
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            commands(prog_name="nodeagent")
        except Exception:  # noqa: BLE001  the boundary: errors of a completion are not shown
            sys.exit(0)


def _from_daemon(words: Callable[["Client", click.Context], Words]) -> Completer:
    """Offers what the daemon answers; nothing where there is no answer."""

    def offered(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem[str]]:
        return _fitting(_asked(words, context), begun)

    return offered


def _asked(
    words: Callable[["Client", click.Context], Words], context: click.Context
) -> list[tuple[str, str]]:
    from nodeagent.cli.shared import connection
    from nodeagent.cli.shared.errors import CommandFailure
    from nodeagent.cli.shared.options import query_socket

    given = context.params
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            socket = query_socket(given.get("socket"), given.get("config_path"))
            with connection.opened(socket, LIMIT_S) as daemon:
                return list(words(daemon, context))
        except (CommandFailure, OSError):
            return []


def _fitting(words: Words, begun: str) -> list[CompletionItem[str]]:
    """Those that begin so, whether in capitals or not, each once and in their order."""
    found = dict[str, str]()
    for word, text in words:
        if word.casefold().startswith(begun.casefold()) and _PLAIN.fullmatch(word):
            found.setdefault(word, printable(" ".join(text.split()))[:MOST_SHOWN])
    return [CompletionItem(word, help=text or None) for word, text in found.items()]


def _devices(daemon: "Client", _context: click.Context) -> Iterator[tuple[str, str]]:
    from nodeagent.cli.shared.texts import enum_text
    from nodeagent.messages import enums
    from nodeagent.messages.pb import fault_service_pb2 as pb

    answer: pb.ListDevicesResponse = daemon.call(pb.ListDevicesRequest())
    for each in answer.devices:
        yield each.name, enum_text(enums.VERDICT_OF, each.verdict)


def _jobs(daemon: "Client", _context: click.Context) -> Iterator[tuple[str, str]]:
    from nodeagent.cli.shared.texts import stage_of
    from nodeagent.messages.pb import fault_service_pb2 as pb

    answer: pb.ListJobsResponse = daemon.call(pb.ListJobsRequest())
    for each in answer.jobs:
        yield each.name, f"{stage_of(each)} {','.join(each.devices)}"


def _holds(daemon: "Client", context: click.Context) -> Iterator[tuple[str, str]]:
    """What ``--id`` may name: of the device that was named before it, or of all."""
    # An option that still waits for its value keeps click from reading the arguments.
    device = context.params.get("device") or next(iter(context.args), None)
    found = _open(daemon)
    for hold in found.holds:
        if device in (None, hold.device, hold.device_id):
            yield hold.id, f"{hold.device}: {hold.owner}: {hold.reason}"
    for promotion in found.promotions:
        if device in (None, promotion.device, promotion.device_id):
            yield promotion.id, f"{promotion.device}: {promotion.rule}"
    for condition in found.conditions:
        if device in (condition.device, condition.device_id):
            yield condition.id, f"{condition.device}: {condition.name}"


def _owners(daemon: "Client", _context: click.Context) -> Iterator[tuple[str, str]]:
    for hold in _open(daemon).holds:
        yield hold.owner, f"{hold.device}: {hold.reason}"


def _actions(daemon: "Client", _context: click.Context) -> Iterator[tuple[str, str]]:
    from nodeagent.cli.shared.texts import enum_text
    from nodeagent.messages import enums

    for each in _open(daemon).resets:
        if not each.HasField("ended_at"):
            stage = enum_text(enums.RESET_STAGE_OF, each.stage)
            yield each.id, f"{stage}: {','.join(each.devices)}"
            yield from ((device, stage) for device in each.devices)


def _consumers(daemon: "Client", _context: click.Context) -> Iterator[tuple[str, str]]:
    from nodeagent.messages.pb import fault_service_pb2 as pb

    answer: pb.ListConsumersResponse = daemon.call(pb.ListConsumersRequest())
    for each in answer.consumers:
        yield each.name, f"of {each.owner}"


def _open_codes(daemon: "Client", _context: click.Context) -> Iterator[tuple[str, str]]:
    for each in _open(daemon).conditions:
        yield each.code, each.name


def _open(daemon: "Client") -> Any:
    from nodeagent.messages.pb import fault_service_pb2 as pb

    return daemon.call(pb.ListConditionsRequest())


devices: Final = _from_daemon(_devices)
jobs: Final = _from_daemon(_jobs)
holds: Final = _from_daemon(_holds)
owners: Final = _from_daemon(_owners)
actions: Final = _from_daemon(_actions)
consumers: Final = _from_daemon(_consumers)


def codes(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem[str]]:
    """Those of faults that are open, then those of the tables on the disk: more than a daemon would list."""
    return _fitting([*_asked(_open_codes, context), *_codes_on_disk(context)], begun)


def _codes_on_disk(context: click.Context) -> Iterator[tuple[str, str]]:
    from nodeagent.cli.shared.errors import CommandFailure
    from nodeagent.cli.shared.options import configured_folders, read_config

    try:
        folders = configured_folders(read_config(context.params.get("config_path")))
        for path in (path for folder in folders for path in sorted(folder.glob("*.toml"))):
            for quoted, bare in _CODE_OF_ROW.findall(path.read_text(errors="replace")):
                yield quoted or bare, ""
    except (CommandFailure, OSError):
        return


def files(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem[str]]:
    """The shell's own: files."""
    return [CompletionItem(begun, type="file")]
