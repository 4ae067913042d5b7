"""Runs ``nodeagent fleet``: wires the parts of ``nodeagent.fleet``, shows what they report, ends on a signal.

It decides nothing about nodes.
"""

import asyncio
import errno
import logging
import os
import shutil
import signal
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # or its library writes to our standard error

from nodeagent.cli.ask import fleet_forms
from nodeagent.cli.ask.why import write_why
from nodeagent.cli.shared.errors import EXIT_INTERRUPTED, EXIT_USAGE, CommandFailure
from nodeagent.cli.shared.foreground import begin_log, until_signalled
from nodeagent.cli.shared.output import captured, draw, note, on_terminal, write, write_json
from nodeagent.client import EventKind
from nodeagent.fleet import prometheus
from nodeagent.fleet.credentials import ClientCertificateFiles, Credentials, CredentialsError
from nodeagent.fleet.delivery import Execution, NewsDelivery, Show
from nodeagent.fleet.follower import ATTEMPTS_A_SECOND, Fleet, connecting, files_missing
from nodeagent.fleet.news import News
from nodeagent.fleet.nodes import NodesError, follow_list, listing_of
from nodeagent.fleet.page.listening import ListenError, PageAddress
from nodeagent.fleet.page.page import Page
from nodeagent.fleet.positions import Positions, PositionsError
from nodeagent.fleet.state import NodeState, NodeStates
from nodeagent.messages.pb import fault_service_pb2 as pb

_log = logging.getLogger(__name__)

EXEC_LIMIT_S: Final = 60.0
DRAW_EVERY_S: Final = 1.0
ONCE_LIMIT_S: Final = 15.0
"""Longer than an attempt to connect takes; the time for all attempts is added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """What the command line asks for. ``command`` is that of --exec, split into words; () for none."""

    nodes: str
    once: bool
    every: bool
    in_json: bool
    kinds: Sequence[EventKind]
    command: Sequence[str]
    at_once: int
    positions: Path | None
    file_sd: Path | None
    file_sd_port: int
    certificates: ClientCertificateFiles | None
    page: PageAddress | None


def run(asked: FleetOptions) -> None:
    """Until a signal, or with --once until each node was asked. Raises ``CommandFailure``."""
    begin_log()
    try:
        with _kept_positions(asked) as positions:
            signal_number = asyncio.run(until_signalled(_follow(asked, positions)))
    except (NodesError, CredentialsError, PositionsError, ListenError) as error:
        raise CommandFailure(str(error)) from error
    except BaseExceptionGroup as group:
        if group.subgroup(BrokenPipeError) is None:
            raise
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from None  # the reader went away
    if signal_number == signal.SIGINT:
        raise SystemExit(EXIT_INTERRUPTED)


@contextmanager
def _kept_positions(asked: FleetOptions) -> Iterator[Positions | None]:
    if asked.positions is None:
        yield None
        return
    positions = Positions.open(asked.positions)
    try:
        yield positions
    finally:
        positions.close()


async def _follow(asked: FleetOptions, positions: Positions | None) -> None:
    credentials = Credentials(asked.certificates) if asked.certificates else None
    try:
        listing = listing_of(asked.nodes, tcp=credentials is not None)
    except ValueError as error:
        raise CommandFailure(f"--nodes: {error}", EXIT_USAGE) from error
    endpoints = await listing()
    if missing := files_missing(len(endpoints)):
        wanted = "raise LimitNOFILE= of the unit, or ulimit -n"
        note(f"nodeagent: for {len(endpoints)} nodes {missing} more open files are needed; {wanted}")
    node_states = NodeStates()
    page = _page(asked, node_states, credentials)
    delivery = NewsDelivery(
        show=_show(asked),
        encode=fleet_forms.line,
        kinds=asked.kinds,
        execution=_execution(asked),
        positions=positions,
    )
    states: list[NodeState] = []
    async with asyncio.TaskGroup() as group:
        fleet = Fleet(group, node_states=node_states, delivery=delivery, connect=connecting(credentials))
        fleet.follow(endpoints)
        if asked.once:
            states = await _all_known(node_states, len(endpoints))
            fleet.follow(())
        else:
            group.create_task(follow_list(listing, endpoints, fleet.follow))
            for work in _further_tasks(asked, node_states, positions, page):
                group.create_task(work)
    if asked.once:
        _show_states(asked, states)


def _further_tasks(
    asked: FleetOptions, node_states: NodeStates, positions: Positions | None, page: Page | None
) -> Iterator[Coroutine[None, None, None]]:
    """What runs while nodes are followed."""
    if positions is not None:
        yield positions.run()
    if asked.file_sd is not None:
        yield prometheus.follow_states(asked.file_sd, asked.file_sd_port, node_states)
    if page is not None:
        yield page.run()
    if _draws(asked):
        yield _draw(asked, node_states, "" if page is None else page.url)


def _page(asked: FleetOptions, node_states: NodeStates, credentials: Credentials | None) -> Page | None:
    """Listens already. Raises ``ListenError``."""
    if asked.page is None:
        return None
    page = Page(asked.page, node_states, credentials, _why_lines)
    _log.info("the page is at %s", page.url)
    return page


def _execution(asked: FleetOptions) -> Execution | None:
    if not asked.command:
        return None
    if shutil.which(asked.command[0]) is None:
        raise CommandFailure(
            f"--exec: no program {asked.command[0]} that can be run; name its path", EXIT_USAGE
        )
    return Execution(asked.command, at_once=asked.at_once, limit_s=EXEC_LIMIT_S)


def _draws(asked: FleetOptions) -> bool:
    return not asked.in_json and on_terminal()


def _show(asked: FleetOptions) -> Show:
    """Lines are written outside of the loop: a slow reader delays the output, and no connection."""
    turn = asyncio.Lock()

    def write(news: News) -> None:
        if asked.in_json:
            write_json(fleet_forms.news_form(news))
        else:
            fleet_forms.write_news(news)

    async def show(news: News) -> None:
        if asked.once or _draws(asked):
            return
        async with turn:
            await asyncio.to_thread(write, news)

    return show


async def _all_known(node_states: NodeStates, nodes: int) -> list[NodeState]:
    """The states, once each node was tried, or at the time limit."""
    with suppress(TimeoutError):
        async with asyncio.timeout(ONCE_LIMIT_S + nodes / ATTEMPTS_A_SECOND):
            while not node_states.all_known:
                node_states.changed.clear()
                await node_states.changed.wait()
    return list(node_states.states.values())


def _show_states(asked: FleetOptions, states: list[NodeState]) -> None:
    """Raises ``CommandFailure``."""
    if asked.in_json:
        for state in states:
            write_json(fleet_forms.node_form(state))
    else:
        fleet_forms.write_nodes(states, every=asked.every)
    if asked.file_sd is not None:
        try:
            prometheus.write(asked.file_sd, prometheus.targets(states, asked.file_sd_port))
        except OSError as error:
            raise CommandFailure(f"--file-sd {asked.file_sd}: {error.strerror}") from error


def _why_lines(response: pb.WhyDeviceResponse, current: pb.Snapshot) -> list[str]:
    """What ``nodeagent why`` shows."""
    with captured(is_plain=True) as lines:
        write_why(response, current)
    return lines


async def _draw(asked: FleetOptions, node_states: NodeStates, url: str) -> None:
    while True:
        node_states.changed.clear()
        with captured() as lines:
            if url:
                write(f"page: {url}")
            fleet_forms.write_nodes(
                list(node_states.states.values()),
                every=asked.every,
                most=fleet_forms.rows_that_fit(shutil.get_terminal_size().lines),
            )
        draw(lines)
        await asyncio.sleep(DRAW_EVERY_S)
        await node_states.changed.wait()
