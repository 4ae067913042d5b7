"""The socket that supervisors of jobs connect to: who comes is counted, known by the kernel, and served.

Anybody may connect; what a job is called follows from its supervisor's cgroup alone. One task here sends all
of them what is wanted, one publication after the other, so that none sees what is not committed.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Final

from nodeagent.api.access.limits import REFUSED_PAUSE_S, pause_s
from nodeagent.api.access.quota import Quota
from nodeagent.api.access.relay import REFUSALS_LOGGED
from nodeagent.api.access.sockets import BACKLOG, bound, open_to_everybody, remove
from nodeagent.api.control.audit import AuditLog
from nodeagent.api.control.context import Ask
from nodeagent.api.jobs import chips, limits, peers
from nodeagent.api.jobs.connection import Connection, identity
from nodeagent.api.jobs.dead_supervisors import DeadSupervisors
from nodeagent.api.jobs.leave_after import LOOK_EACH_S, LeaveAfter
from nodeagent.api.jobs.peers import live_jobs
from nodeagent.api.jobs.shared import Shared
from nodeagent.api.jobs.slow_chips import SlowChips
from nodeagent.api.jobs.stream import LineStream
from nodeagent.api.jobs.unkillable import UnkillableHolders
from nodeagent.api.jobs.unnamed import UnnamedSupervisors
from nodeagent.api.refusal import Refusal, RefusalLimit, Status
from nodeagent.config.sections import JobsConfig
from nodeagent.core.catalog.settings import ResetSettings
from nodeagent.core.model import Holder, Peer, View
from nodeagent.core.state.names import answers_for
from nodeagent.job.lines import MAX_LINE_BYTES, LearntLimits, SupervisorRefused, encode
from nodeagent.store.consumers import Consumer
from nodeagent.store.event_feed import EventFeed

KEY: Final = "jobs.socket"

log = logging.getLogger(__name__)


class _Counted:
    """A supervisor with a place, as quotas count; ``is_first``: of the job that its cgroup proves."""

    is_operator = False

    def __init__(self, peer: Peer, of_cgroup: str, *, is_first: bool) -> None:
        self.counted_as = answers_for(of_cgroup, peer.uid)
        self.of_cgroup = of_cgroup
        self.is_first = is_first


class JobListener:
    """``readings`` gives the last readings of each observed device, by its name; ``consumer`` what is
    kept of one, by its name; ``resets`` the settings of resets in force. ``dead_supervisors`` ends jobs whose
    supervisor is dead, ``unkillable`` finds processes that cannot be ended, ``unnamed`` supervisors of which
    it is not known which job, ``slow_chips`` chips whose clock is far below that of the others of their job.
    """

    def __init__(
        self,
        *,
        path: Path,
        feed: EventFeed,
        ask: Ask,
        readings: Callable[[], Mapping[str, Mapping[str, float]]],
        audit: AuditLog,
        config: JobsConfig,
        version: str,
        consumer: Callable[[str], Consumer | None],
        resets: Callable[[], ResetSettings],
    ) -> None:
        self._path = path
        self._shared = Shared(
            feed=feed,
            ask=ask,
            readings=readings,
            audit=audit,
            config=config,
            version=version,
            resets=resets,
            leaving=LeaveAfter(consumer),
            unkillable=UnkillableHolders(feed, ask),
        )
        self.dead_supervisors = DeadSupervisors(feed, ask)
        self.unkillable = self._shared.unkillable
        self.unnamed = UnnamedSupervisors(feed, ask)
        self.slow_chips = SlowChips(feed, ask, readings)
        self._places = Quota(limits.SUPERVISORS)
        self._unproven = Quota(limits.UNPROVEN)
        self._proven = set[str]()
        """The jobs that cgroups prove, of those who have a place."""
        self._refusals = RefusalLimit(most=REFUSALS_LOGGED)
        self.refused = 0
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self._users: tuple[tuple[tuple[Holder, ...] | None, ...], tuple[str, ...]] = ((), ())
        """The processes on each device, and who was connected, when they were last looked at."""

    def reload(self, config: JobsConfig) -> None:
        """Take the configuration for those who connect from now on."""
        self._shared.config = config

    def limits_of(self, job: str) -> LearntLimits:
        """What the supervisor of that job has learnt; nothing where none is connected."""
        connected = self._shared.connected.get(job)
        return LearntLimits() if connected is None else connected.limits

    async def run(self) -> None:
        """Until it is cancelled. One that was not opened only ends the jobs without a supervisor, and looks
        for processes that cannot be ended.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.dead_supervisors.run())
            tasks.create_task(self.unkillable.run())
            tasks.create_task(self.unnamed.run())
            tasks.create_task(self.slow_chips.run())
            if self._socket is not None:
                self._accepting = tasks.create_task(self._accept_all(self._socket))
                tasks.create_task(self._send_wanted())

    def open(self) -> None:
        """Raises ``OutletError``."""
        self._socket = bound(self._path, KEY)
        self._socket.listen(BACKLOG)
        open_to_everybody(self._path, KEY)

    async def close(self) -> None:
        """No supervisor is answered any more; a report is taken, or is sent again."""
        accepting, self._accepting = self._accepting, None
        if accepting is not None:
            accepting.cancel()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            remove(self._path)
        for task in tuple(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    # ------------------------------------------------------------------ who comes

    async def _accept_all(self, listener: socket.socket) -> None:
        """One at a time: between two of them whatever else is due is done."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("%s: %s", KEY, error)
                await asyncio.sleep(pause_s(error))
                continue
            try:
                peer = peers.peer_of(accepted)
                self._admit(accepted, peer)
            except (Refusal, OSError) as error:
                self._turn_away(accepted, str(error))
                await asyncio.sleep(REFUSED_PAUSE_S)
            else:
                await asyncio.sleep(0)

    def _admit(self, accepted: socket.socket, peer: Peer) -> None:
        """Raises ``Refusal``, and ``OSError`` where its process has ended meanwhile."""
        of_cgroup = peers.job_of_peer(peer)
        is_first = bool(of_cgroup) and of_cgroup not in self._proven
        counted = _Counted(peer, of_cgroup, is_first=is_first)
        if self._shared.share_of(of_cgroup).connections.spend(counted.counted_as):
            often = f"{counted.counted_as} connects too often; try again later"
            raise Refusal(Status.RESOURCE_EXHAUSTED, often)
        self._take_place(counted)
        self._begin(self._serve(accepted, peer, of_cgroup), counted)

    def _take_place(self, counted: _Counted) -> None:
        """Raises ``Refusal`` where none is left for it."""
        quotas = (self._places,) if counted.is_first else (self._places, self._unproven)
        for quota in quotas:
            obstacle = quota.obstacle(counted)
            if obstacle is not None:
                raise Refusal(Status.RESOURCE_EXHAUSTED, obstacle.reason)
        for quota in quotas:
            quota.take(counted.counted_as)
        if counted.is_first:
            self._proven.add(counted.of_cgroup)

    def _give_place_back(self, counted: _Counted) -> None:
        self._places.give_back(counted.counted_as)
        if counted.is_first:
            self._proven.remove(counted.of_cgroup)
        else:
            self._unproven.give_back(counted.counted_as)

    def _turn_away(self, accepted: socket.socket, why: str) -> None:
        """Send the reason, if the caller takes it at once."""
        self.refused += 1
        if self._refusals.admit() is not None:
            log.warning("%s: refused: %s", KEY, why)
        with accepted:
            accepted.setblocking(False)
            try:
                accepted.send(encode(SupervisorRefused(why=why)))
            except OSError as error:
                log.debug("%s: %s", KEY, error)

    def _begin(self, serving: Coroutine[Any, Any, None], counted: _Counted) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            self._serving.discard(task)
            self._give_place_back(counted)
            if not task.cancelled() and (error := task.exception()) is not None:
                log.error("the connection of a supervisor failed", exc_info=error)

        task = asyncio.create_task(serving)
        self._serving.add(task)
        task.add_done_callback(ended)

    async def _serve(self, accepted: socket.socket, peer: Peer, of_cgroup: str) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=accepted, limit=MAX_LINE_BYTES)
        stream = LineStream(reader, writer, self._shared.share_of(of_cgroup).lines, identity(peer))
        await Connection(self._shared, peer, of_cgroup, stream).serve()

    # ------------------------------------------------------------------ what they are sent

    async def _send_wanted(self) -> None:
        feed = self._shared.feed
        while True:
            publication = feed.current
            view, connections = publication.view, tuple(self._shared.connected.values())
            jobs = live_jobs(view) if connections else {}
            for connection in connections:
                connection.show(view, jobs)
            if connections and self._users_changed(view):
                used = self._shared.ownership.used(view)
                for connection in connections:
                    connection.grow(used.get(connection.name, chips.NO_USE))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EACH_S if self._shared.leaving.is_holding else None):
                    await feed.wait_change(publication)

    def _users_changed(self, view: View) -> bool:
        """Or who is connected has: then all are looked at again."""
        before = self._users
        holders = tuple(device.holders for device in view.devices)
        self._users = (holders, tuple(self._shared.connected))
        return before != self._users
