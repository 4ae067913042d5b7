"""The Slurm bridge: follows this node's daemon, and does in Slurm what ``decide`` orders, one after another.

It keeps nothing on a disk: the daemon keeps how far it has come, as a named consumer, and Slurm keeps what
was done. Each of the three may restart, and the others have it. Without the daemon, or without Slurm, it
waits and changes nothing.
"""

import asyncio
import logging
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from nodeagent.client import AsyncClient, ClientError, EventKind, Job, JobStage, Position, Recommendation
from nodeagent.client.session import is_final
from nodeagent.config.schedulers import SlurmConfig
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.schedulers.loop import BridgeLoop, Decision, LoopTick, run_together
from nodeagent.schedulers.slurm.decide import (
    Acknowledge,
    Annotate,
    Drain,
    EffectDone,
    EffectFailed,
    LookAtNode,
    Node,
    NodeReported,
    NodeSeen,
    Requeue,
    Resume,
    SlurmEffect,
    SlurmInput,
    SlurmSettings,
    SlurmState,
    Unsure,
    decide,
    taken,
)
from nodeagent.schedulers.slurm.programs import NoSuchNode, RunningJob, Slurm, SlurmError
from nodeagent.schedulers.slurm.verdicts import Standing, Verdicts, judge

CONSUMER: Final = "slurm"
"""Under this name the daemon keeps how far the bridge has come."""

ANOTHER_STORE: Final = ("FAILED_PRECONDITION", "INVALID_ARGUMENT")
"""The daemon's numbers begin again; the stream is about to report from where."""

ASK_AGAIN_S: Final = 1.0

_JOB: Final = re.compile(r"slurm:(\d+)(?:[./].*)?")
"""With its step, and with the process of a second supervisor."""

_UNNAMED: Final = re.compile(r"pid:|slurm:s")
"""By its process alone, or by the SLUID of its job (nodeagent/system/job_cgroups.py)."""

_MOVES: Final = (Recommendation.RESCHEDULE, Recommendation.RESCHEDULE_ISOLATED)

log = logging.getLogger(__name__)


def to_be_moved(jobs: Iterable[Job]) -> tuple[int, ...]:
    """The numbers in Slurm. One with a supervisor looks after itself, also when that has ended: its batch
    script may still put its results away.
    """
    supervised, moved = set[int](), set[int]()
    for each in jobs:
        if found := _JOB.fullmatch(each.name):
            if each.stage is not None:
                supervised.add(int(found[1]))
            elif each.recommended in _MOVES:
                moved.add(int(found[1]))
    return tuple(sorted(moved - supervised))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnnamedSupervisor:
    """A supervisor of which it is not known which job of Slurm it supervises. ``until_s``: when it ended, in
    seconds since 1970; None: it is there.
    """

    name: str
    uid: int
    until_s: float | None

    def may_supervise(self, job: RunningJob) -> bool:
        """Whether the job is of its user, and it was there while the job ran."""
        return self.uid == job.uid and (self.until_s is None or self.until_s >= job.since_s)


def unnamed_supervisors(jobs: Iterable[Job]) -> tuple[UnnamedSupervisor, ...]:
    """Those whose name has no number of a job of Slurm, of no pod and of no container."""
    return tuple(
        UnnamedSupervisor(name=each.name, uid=each.uid, until_s=_ended_s(each))
        for each in jobs
        if each.stage is not None and _UNNAMED.match(each.name)
    )


def _ended_s(job: Job) -> float | None:
    return job.since.timestamp() if job.stage is JobStage.ENDED and job.since is not None else None


async def numbered(client: AsyncClient, verdicts: Verdicts) -> Verdicts:
    """With the number of the event that raised the worst fault: the newest event may be another one. Raises
    ``ClientError``.
    """
    if not verdicts.faults or verdicts.faults[0].is_held:
        return verdicts
    worst = verdicts.faults[0]
    kinds = [enums.EVENT_KINDS[kind] for kind in (EventKind.RAISED, EventKind.PROMOTED)]
    raised = pb.EventFilter(kinds=kinds, devices=[worst.device], codes=[worst.code])
    answer: pb.ListEventsResponse = await client.call(
        pb.ListEventsRequest(limit=1, newest=True, filter=raised)
    )
    seq = answer.events[-1].seq if answer.events else 0
    return replace(verdicts, faults=(replace(worst, seq=seq), *verdicts.faults[1:]))


class SlurmBridge:
    def __init__(self, client: AsyncClient, slurm: Slurm, config: SlurmConfig) -> None:
        self._client = client
        self._slurm = slurm
        self._config = config
        self._settings = SlurmSettings(
            resume_after_ns=config.resume_after_ns, look_each_ns=config.look_each_ns
        )
        self._loop = BridgeLoop[SlurmState, SlurmInput, SlurmEffect](
            SlurmState(), self._decide, self._perform, _log_news
        )
        self._name = ""
        self._newest: Position | None = None
        self._changed = asyncio.Event()
        self._trouble = ""
        self._unnamed: tuple[UnnamedSupervisor, ...] = ()
        self._seen: Node | None = None

    async def run(self) -> None:
        """Until it is cancelled. Raises ClientError where waiting for the daemon cannot help."""
        await run_together(self._follow(), self._ask(), self._loop.run())

    # ------------------------------------------------------------------ the daemon

    async def _follow(self) -> None:
        """Each change is only a reason to ask for the whole state: many at once are one question."""
        async with aclosing(self._client.watch(consumer=CONSUMER, snapshot="always")) as updates:
            async for update in updates:
                self._newest = update.position
                self._changed.set()

    async def _ask(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            position = self._newest
            assert position is not None
            try:
                verdicts = await numbered(self._client, judge(await self._client.devices()))
                listed = await self._client.jobs() if self._requeues else ()
            except ClientError as error:
                if is_final(error):
                    raise
                await asyncio.sleep(ASK_AGAIN_S)
                self._changed.set()
                continue
            # It is at least as new as the position. A second report of the same changes nothing.
            self._unnamed = unnamed_supervisors(listed)
            self._loop.give(NodeReported(position, verdicts, to_be_moved(listed)))

    @property
    def _requeues(self) -> bool:
        return self._config.requeue == "unsupervised"

    # ------------------------------------------------------------------ Slurm

    def _decide(
        self, state: SlurmState, given: Sequence[SlurmInput | LoopTick]
    ) -> Decision[SlurmState, SlurmEffect]:
        now_ns = time.monotonic_ns()
        for each in given[:-1]:
            state = taken(state, each, now_ns)
        return decide(state, given[-1], now_ns, self._settings)

    async def _perform(self, effect: SlurmEffect) -> SlurmInput:
        try:
            given = await self._done(effect)
        except (SlurmError, ClientError) as error:
            if isinstance(error, ClientError) and is_final(error):
                raise
            if isinstance(error, NoSuchNode):
                self._name = ""
            if str(error) != self._trouble:
                log.warning("%s; trying again", error)
            self._trouble = str(error)
            return EffectFailed()
        if self._trouble and not isinstance(effect, Acknowledge):
            log.info("Slurm answers again")
            self._trouble = ""
        return given

    async def _done(self, effect: SlurmEffect) -> SlurmInput:
        if isinstance(effect, Acknowledge):
            await self._acknowledge(effect.position)
            return EffectDone()
        name = self._name = self._name or self._config.node_name or await self._slurm.name_of_this_node()
        match effect:
            case LookAtNode():
                return NodeSeen(self._note(name, await self._slurm.node(name)))
            case Drain():
                await self._slurm.drain(name, effect.reason)
                log.warning("node %s is drained: %s", name, effect.reason)
            case Resume():
                # The last report was good, but while the daemon is away the state is not known.
                if not await self._is_still_well():
                    return Unsure()
                await self._slurm.resume(name)
                log.info("node %s is resumed: all its chips are well", name)
            case Annotate():
                await self._annotate(name, effect.comment)
            case Requeue():
                await self._requeue(effect.job, name)
        return EffectDone()

    async def _annotate(self, name: str, comment: str) -> None:
        """The comment only informs: no drain waits for a Slurm that refuses it."""
        try:
            await self._slurm.annotate(name, comment)
        except SlurmError as error:
            if str(error) != self._trouble:
                log.warning("%s; the comment of node %s does not list its faults", error, name)
            self._trouble = str(error)

    async def _requeue(self, job: int, name: str) -> None:
        running = await self._slurm.running(job, name)
        if running is None:
            return
        if of_user := [each for each in self._unnamed if each.may_supervise(running)]:
            log.warning(
                "job %d is not requeued: user %d has the supervisor %s, of which it is not known which job it"
                " supervises; see supervisor_unnamed in nodeagent status",
                job,
                running.uid,
                of_user[0].name,
            )
            return
        await self._slurm.requeue(running.name)
        log.warning("job %d is requeued: node %s is faulty", job, name)

    async def _is_still_well(self) -> bool:
        try:
            return judge(await self._client.devices()).standing is Standing.WELL
        except ClientError as error:
            if is_final(error):
                raise
            log.warning("the drain goes on, since the daemon does not report how the node is: %s", error)
            return False

    def _note(self, name: str, node: Node) -> Node:
        if node.is_drained and not node.is_ours and node != self._seen:
            log.info("node %s was drained by another, and is left alone: %s", name, node.reason)
        self._seen = node
        return node

    async def _acknowledge(self, position: Position) -> None:
        try:
            await self._client.ack(CONSUMER, position)
        except ClientError as error:
            if error.status not in ANOTHER_STORE:
                raise


def _log_news(before: SlurmState, after: SlurmState, given: Sequence[SlurmInput | LoopTick]) -> None:
    if any(isinstance(each, EffectFailed) for each in given):
        for job in after.requeued - before.requeued:
            log.error("job %d cannot be requeued, and is left where it is", job)
