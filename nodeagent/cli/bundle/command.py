"""``nodeagent bundle``: one archive for support, listed before it is written.

It changes nothing on the node and sends nothing away. Neither a daemon nor root is needed: what cannot be
read is named in the archive with the reason.
"""

import os
import re
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent import __version__
from nodeagent.cli.bundle import archive
from nodeagent.cli.bundle.archive import ArchivedFile
from nodeagent.cli.bundle.collecting import Collected, Part, collect
from nodeagent.cli.bundle.items import ITEMS, MIB, NAMES, Item
from nodeagent.cli.bundle.redaction import secrets_in
from nodeagent.cli.bundle.sources import Absent, BundledNode
from nodeagent.cli.shared.errors import EXIT_FAILED, CommandFailure
from nodeagent.cli.shared.options import Output, config_option, output_option, time_option
from nodeagent.cli.shared.output import confirmed, note, on_terminal, write, write_json, write_table
from nodeagent.config.config import Config
from nodeagent.config.load import ConfigError, config_files, load_config
from nodeagent.config.sections import AgentConfig, MetricsConfig
from nodeagent.toml.values import parse_size_bytes

LIMIT_S: Final = 120.0
JOURNAL: Final = timedelta(days=3)
LEAST_SIZE: Final = MIB
_LEARNT_FROM: Final = ("configuration", "units")
"""Items whose secrets are also looked for in all others."""


def _size(_context: click.Context, _parameter: click.Parameter, text: str) -> int:
    try:
        size = parse_size_bytes(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if size < LEAST_SIZE:
        raise click.BadParameter("at least 1MiB is needed")
    return size


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleScope:
    """What the caller wants of an archive."""

    items: Sequence[Item]
    without: Sequence[str]
    secrets: Sequence[str]
    max_size_bytes: int
    limit_s: float


@click.command("bundle")
@click.option(
    "--file",
    "path",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="File, or folder for it. Default: nodeagent-bundle-HOST-TIME.tar.gz here. No file is replaced.",
)
@click.option("--list", "only_list", is_flag=True, help="Show what an archive would hold, and write none.")
@click.option("-y", "--yes", is_flag=True, help="Write it without asking; needed where there is no terminal.")
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(NAMES),
    metavar="ITEM",
    help="Leave this item of the list out; may be repeated.",
)
@time_option("--since", f"Events and journals from this time on; journals by default of {JOURNAL.days} days")
@click.option(
    "--redact",
    "secrets",
    multiple=True,
    metavar="TEXT",
    help="Remove this text too wherever it is, such as a user's name; may be repeated.",
)
@click.option(
    "--max-size",
    default="50MiB",
    show_default=True,
    callback=_size,
    metavar="SIZE",
    help="Of the archive, at most.",
)
@click.option(
    "--timeout",
    "limit_s",
    type=click.FloatRange(min=1.0, max=3600.0),
    default=LIMIT_S,
    show_default=True,
    metavar="SECONDS",
    help="For all of it. Each part has a limit of its own.",
)
@config_option
@output_option
def command(
    path: Path | None,
    only_list: bool,
    yes: bool,
    without: tuple[str, ...],
    since: Timestamp | None,
    secrets: tuple[str, ...],
    max_size: int,
    limit_s: float,
    config_path: Path | None,
    output: Output,
) -> None:
    """Collect what support needs to know of this node in one archive.

    Passwords, tokens and private keys are removed where their names or forms show them. Names of hosts, users
    and jobs are not: see --redact and --without. If no daemon answers, its store is read. What cannot be read
    is named in the archive's manifest with the reason.
    """
    wanted = BundleScope(
        items=[item for item in ITEMS if item.name not in without],
        without=without,
        secrets=[text for text in secrets if text],
        max_size_bytes=max_size,
        limit_s=limit_s,
    )
    if only_list:
        _write_list(wanted, output)
        return
    at = datetime.now(UTC).replace(microsecond=0)
    host = re.sub(r"[^-.\w]", "_", socket.gethostname())
    name = f"nodeagent-bundle-{host}-{at:%Y%m%dT%H%M%SZ}"
    place = _place(path, name)
    _refuse_place(place)
    if not yes:
        _confirm(wanted, place, output)
    _end_by_exception()
    node, why_not = _node(config_path, since)
    if why_not:
        note(f"nodeagent: the configuration cannot be used, so the usual paths are: {why_not}")
    begun_s = time.monotonic()
    listed, absent = _collected(node, wanted)
    seconds = round(time.monotonic() - begun_s, 1)
    head = {
        "made_by": f"nodeagent {__version__}",
        "node": node.agent.name(),
        "at": at.isoformat(),
        "as_root": os.geteuid() == 0,
        "seconds": seconds,
        "configuration": why_not or "used",
    }
    content = archive.packed(name, archive.manifest(head, listed, absent, without), listed, at)
    _write(place, content)
    _write_result(place, len(content), listed, seconds, output)


def _place(path: Path | None, name: str) -> Path:
    file = f"{name}.tar.gz"
    if path is None:
        return Path(file).absolute()
    return (path / file if path.is_dir() else path).absolute()


def _refuse_place(place: Path) -> None:
    try:
        archive.check_place(place)
    except OSError as error:
        raise CommandFailure(f"{error}; name another place with --file") from error


def _confirm(wanted: BundleScope, place: Path, output: Output) -> None:
    """Raises ``UsageError`` without a terminal, and ``CommandFailure`` where the person does not agree."""
    if not (sys.stdin.isatty() and on_terminal()):
        raise click.UsageError("without a terminal --yes is needed; --list shows what the archive would hold")
    _write_list(wanted, output)
    if not confirmed(f"Write {place}?"):
        raise CommandFailure("nothing was written", EXIT_FAILED)


def _write(place: Path, content: bytes) -> None:
    try:
        archive.write(place, content)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandFailure(
            f"{place} cannot be written: {reason}; nothing of it is left; see --file"
        ) from error


def _node(config_path: Path | None, since: Timestamp | None) -> tuple[BundledNode, str]:
    """What is configured; where the configuration is wrong the usual paths, and what is wrong."""
    config: Config | None = None
    why_not = ""
    try:
        config = load_config(config_path, os.environ)
    except ConfigError as error:
        why_not = str(error).splitlines()[0]
    agent = AgentConfig() if config is None else config.agent
    since_at = None if since is None else since.ToDatetime(UTC)
    return (
        BundledNode(
            agent=agent,
            metrics=MetricsConfig() if config is None else config.metrics,
            record_dir=Path(f"{agent.state_dir}-reset") if config is None else config.record_dir,
            config_files=config_files(config_path, os.environ, lambda _problem: None),
            site_table_folders=[Path(folder) for folder in agent.tables[1:]],
            config_path=config_path,
            journal_since=since_at or datetime.now(UTC) - JOURNAL,
            since=since_at,
        ),
        why_not,
    )


def _collected(node: BundledNode, wanted: BundleScope) -> tuple[list[ArchivedFile], list[Absent]]:
    until_s = time.monotonic() + wanted.limit_s
    named = [
        each for item in wanted.items for source in item.sources for each in source.parts(item.name, node)
    ]
    found = collect([each for each in named if isinstance(each, Part)], until_s - time.monotonic())
    secrets = {*wanted.secrets, *_learnt(found)}
    absent = dict.fromkeys(each for each in named if isinstance(each, Absent))
    return list(archive.entries(found, secrets, wanted.max_size_bytes)), list(absent)


def _learnt(found: Sequence[Collected]) -> set[str]:
    """Secrets that the configuration, unit files and this environment name, to be found in other texts."""
    texts = [
        each.content.decode(errors="surrogateescape") for each in found if each.part.item in _LEARNT_FROM
    ]
    texts += [f"{name}={value}" for name, value in os.environ.items()]
    return {secret for text in texts for secret in secrets_in(text)}


def _end_by_exception() -> None:
    """So that SIGTERM, too, ends what runs and leaves no file."""

    def end(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


def _write_list(wanted: BundleScope, output: Output) -> None:
    if output == Output.JSON:
        for item in wanted.items:
            write_json({"item": item.name, "what": item.what, "from": [each.about for each in item.sources]})
        return
    rows = [[item.name, item.what, "; ".join(each.about for each in item.sources)] for item in wanted.items]
    write_table(["ITEM", "WHAT", "FROM"], rows)


def _write_result(
    place: Path, size: int, listed: Sequence[ArchivedFile], seconds: float, output: Output
) -> None:
    missing = [each for each in listed if each.error or each.truncated]
    if output == Output.JSON:
        result: dict[str, Any] = {
            "file": str(place),
            "size_bytes": size,
            "seconds": seconds,
            "files": [each.form() for each in listed],
        }
        write_json(result)
        return
    for each in missing:
        why = each.error or f"cut to {len(each.content) / MIB:.1f} MiB"
        note(f"nodeagent: {each.collected.part.source}: {why}")
    whole = f"{len(listed) - len(missing)} of {len(listed)} parts are complete"
    write(f"{place}: {size / MIB:.1f} MiB, {whole}, {seconds:.0f} s; secrets removed: {_redactions(listed)}")
    write("Look through it before you pass it on: it holds names of hosts, users and jobs, and kernel lines.")


def _redactions(listed: Sequence[ArchivedFile]) -> int:
    return sum(each.redactions for each in listed)
