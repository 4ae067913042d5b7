"""One connection of a supervisor: its reports become inputs of the core, what is wanted is sent to it.

    hello ──> its name, by its cgroup ──> welcome
    begin ──> JobBegun ──> committed ──> wanted, and again at each change
    said  ──> RunReported  ──> committed ──> taken
    ask   ──> chips
    bye   ──> JobEnded ──> committed ──> taken

A user's command sends ``own`` in place of ``hello``, and is sent the jobs of that user.

One line at a time. It decides nothing about the job. A connection that ends means nothing for it either: the
supervisor may come back.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from nodeagent.api.access.credentials import Caller, Role
from nodeagent.api.jobs import chips, conversion, limits, own_jobs, peers
from nodeagent.api.jobs.peers import (
    former_names,
    is_claimed,
    is_of_one_process,
    is_proven,
    live_jobs,
    name_for,
    other_user,
)
from nodeagent.api.jobs.shared import Shared, Spending
from nodeagent.api.jobs.stream import ConnectionEnded, LineStream
from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.model import (
    Input,
    JobBegun,
    JobEnded,
    JobStage,
    JobView,
    Peer,
    View,
)
from nodeagent.core.state.names import answers_for
from nodeagent.job import lines, model
from nodeagent.job.model import RunReport, RunRequest
from nodeagent.store.records import Taken

ISOLATED: Final = model.ExitStatus.RESCHEDULE_ISOLATED

METHOD: Final = "SuperviseJob"
"""The name of the method in the audit log."""

_RUNS_AFTER: Final = {
    model.RunEvent.STARTED: True,
    model.RunEvent.STOPPED: False,
    model.RunEvent.EXITED: False,
}
"""Whether there is a run after this report; the others do not change that."""


class Connection:
    """``name`` is "" until its job has one. Used from one event loop."""

    def __init__(self, shared: Shared, peer: Peer, of_cgroup: str, stream: LineStream) -> None:
        self.peer = peer
        self.name = ""
        self._shared = shared
        self._of_cgroup = of_cgroup
        self._share = shared.share_of(of_cgroup)
        self._spending = Spending(self._share, answers_for(of_cgroup, peer.uid))
        self._stream = stream
        self._begun: lines.JobBegin | None = None
        self._pids = peers.Pids(peer)
        self._run = 0
        self._runs = False
        self._sent: RunRequest | None = None
        self.limits = lines.LearntLimits()
        self._one_at_a_time = asyncio.Lock()
        self._growth: set[asyncio.Task[None]] = set()
        self._found = set[str]()
        """The processes that the core knows as the job's."""

    async def serve(self) -> None:
        """Until either side ends it."""
        try:
            goes_on = await self._greet()
            while goes_on:
                line = await self._next()
                async with self._one_at_a_time:
                    goes_on = await self._take(line)
        except Refusal as refusal:
            self._refuse(refusal.reason)
        except ConnectionEnded:
            pass
        finally:
            self._leave()

    def is_another(self, peer: Peer) -> bool:
        """Whether it is of another process, and that lives: its end may not have been noticed yet."""
        return self.peer != peer and peers.lives(self.peer)

    def replace(self) -> None:
        """The same supervisor has connected again."""
        self._stream.abort()

    # ------------------------------------------------------------------ sent to the supervisor

    def show(self, view: View, jobs: Mapping[str, JobView]) -> None:
        """What is wanted now, unless it was sent. ``jobs`` are those of the view that have not ended."""
        if self._begun is None:
            return
        job = jobs.get(self.name)
        if job is None or job.peer != self.peer or job.wanted is None:
            # It was ended, or is another's: a new connection begins it again.
            self._stream.abort()
            return
        if self._shared.leaving.holds_job(
            job, self._shared.feed.current.seq, self._shared.config.leave_after
        ):
            return
        want = conversion.want(view, job, job.wanted)
        if want != self._sent:
            try:
                self._stream.write(want)
            except ConnectionEnded:
                return
            self._sent = want

    def grow(self, use: chips.JobUse) -> None:
        """The job was found to use these devices by these processes. It does not wait for the core."""
        job = self._own_job() if use.processes else None
        if job is not None and self._is_news(job, use):
            growth = asyncio.create_task(self._grow(use))
            self._growth.add(growth)
            growth.add_done_callback(self._growth.discard)

    def _is_news(self, job: JobView, use: chips.JobUse) -> bool:
        return not set(job.devices).issuperset(use.devices) or not self._found.issuperset(use.processes)

    async def _grow(self, use: chips.JobUse) -> None:
        async with self._one_at_a_time:
            job = self._own_job()
            if self._begun is None or job is None or not self._is_news(job, use):
                return
            if not self._runs and job.stage is JobStage.ASKED:
                # It would mean that the run has stopped.
                return
            await self._shared.ask(self._input(self._begun, job.run, self._runs, use))
            self._found = set(use.processes)

    # ------------------------------------------------------------------ received from the supervisor

    async def _greet(self) -> bool:
        """Whether more may follow."""
        try:
            async with asyncio.timeout(limits.HELLO_LIMIT_S):
                hello = await self._stream.next()
        except TimeoutError:
            late = f"no hello within {limits.HELLO_LIMIT_S:g} s"
            raise Refusal(Status.DEADLINE_EXCEEDED, late) from None
        if isinstance(hello, lines.AskOwnJobs):
            answer = own_jobs.answer(hello, self._shared.feed, answers_for(self._of_cgroup, self.peer.uid))
            await self._stream.write_all(answer, limits.OWN_JOBS_LIMIT_S)
            return False
        if not isinstance(hello, lines.SupervisorHello):
            raise Refusal(Status.INVALID_ARGUMENT, "the first line is hello")
        if hello.protocol < 1:
            raise Refusal(Status.INVALID_ARGUMENT, f"protocol: 1 or later, not {hello.protocol}")
        await self._admit()
        config = self._shared.config
        self._stream.write(
            lines.Welcome(
                job=self.name,
                version=self._shared.version,
                defaults=config.defaults,
                limits=config.limits,
                reports=tuple(each.value for each in lines.ADDED_REPORTS),
                resets=self._shared.reset_modes(),
            )
        )
        return True

    async def _next(self) -> lines.Line:
        """Whoever does not begin gives its place up."""
        if self._begun is not None:
            return await self._stream.next()
        try:
            async with asyncio.timeout(limits.BEGIN_LIMIT_S):
                return await self._stream.next()
        except TimeoutError:
            late = f"no begin within {limits.BEGIN_LIMIT_S:g} s"
            raise Refusal(Status.DEADLINE_EXCEEDED, late) from None

    async def _admit(self) -> None:
        view = self._shared.feed.current.view
        if self._shared.config.accept == "claimed" and not is_claimed(view, self._of_cgroup):
            job = self._of_cgroup or f"process {self.peer.pid}, whose cgroup names no job"
            why = f'no hook has claimed a chip for {job}, and jobs.accept is "claimed"; see nodeagent claim'
            await self._shared.audit.note_refusal(_caller(self.peer), METHOD, self._of_cgroup, why)
            raise Refusal(Status.PERMISSION_DENIED, why)
        await self._refuse_other_user(view)
        connected = self._shared.connected
        others = [name for name, each in connected.items() if each.is_another(self.peer)]
        earlier = next((each for each in connected.values() if each.peer == self.peer), None)
        self.name = name_for(self.peer, self._of_cgroup, view, peers.lives, others)
        if earlier is not None:
            if is_proven(earlier.name, self.peer, self._of_cgroup):
                self.name = earlier.name
            earlier.replace()
        connected[self.name] = self
        self._shared.ownership.join(self.name, self.peer, self._of_cgroup)

    async def _refuse_other_user(self, view: View) -> None:
        supervised = [(job.name, job.peer) for job in live_jobs(view).values() if job.peer is not None]
        supervised += [(name, each.peer) for name, each in self._shared.connected.items()]
        other = other_user(self._of_cgroup, self.peer, supervised)
        if other is not None:
            why = (
                f"{self._of_cgroup} is supervised by process {other.pid} of user {other.uid}, and a job has"
                f" one user: process {self.peer.pid} is of user {self.peer.uid}"
            )
            await self._shared.audit.note_refusal(_caller(self.peer), METHOD, self._of_cgroup, why)
            raise Refusal(Status.PERMISSION_DENIED, why)

    async def _take(self, line: lines.Line) -> bool:
        """Whether more may follow."""
        match line:
            case lines.JobBegin():
                await self._begin(line)
            case RunReport() | lines.AskChips() | lines.Bye() if self._begun is None:
                raise Refusal(Status.INVALID_ARGUMENT, "begin comes before said, ask and bye")
            case RunReport():
                await self._said(line)
            case lines.AskChips():
                self.limits = conversion.limits(line)
                self._stream.write(self._chips(line))
            case lines.Bye():
                await self._bye(line)
                return False
            case _:
                raise Refusal(Status.INVALID_ARGUMENT, "begin, said, ask or bye is wanted here")
        return True

    async def _begin(self, begin: lines.JobBegin) -> None:
        conversion.check(begin)
        current = self._shared.feed.current
        former = live_jobs(current.view).get(self.name)
        use = self._shared.ownership.used(current.view).get(self.name, chips.NO_USE)
        inputs: list[Input] = [self._input(begin, begin.run, begin.is_running, use)]
        is_other = former is not None and former.peer != self.peer
        if is_other and is_of_one_process(self.name, self._of_cgroup):
            inputs.insert(0, JobEnded(job=self.name, why="another process has its pid"))
        for each in former_names(self.peer, self.name, current.view):
            inputs.insert(0, JobEnded(job=each, why=f"its supervisor is that of {self.name}"))
        await self._spending.pay(begin.kind, begin.strategy)
        taken = await self._ask(*inputs)
        if taken.answer is not None and taken.answer.refused is not None:
            raise Refusal(Status.RESOURCE_EXHAUSTED, taken.answer.reason)
        self._found = set(use.processes)
        self._begun, self._sent = begin, None
        self._run, self._runs = begin.run, begin.is_running
        view = self._shared.feed.current.view
        self.show(view, live_jobs(view))

    async def _said(self, said: RunReport) -> None:
        job = self._own_job()
        if job is None:
            raise ConnectionEnded
        if said.number > job.said:
            # What is seen of it comes first: the job leaves a node that takes no new work then.
            is_stuck = said.what is model.RunEvent.UNKILLABLE
            seen = self._shared.unkillable.look_at(job) if is_stuck else []
            given = await self._spending.pay_for(conversion.report(self.name, said))
            if given is not None:
                await self._ask(*seen, given)
        if said.run >= self._run:
            self._run, self._runs = said.run, _RUNS_AFTER.get(said.what, self._runs)
        self._stream.write(lines.ReportTaken(number=said.number))

    async def _bye(self, bye: lines.Bye) -> None:
        ended = conversion.bye(self.name, bye)
        self._begun = None
        # It leaves by its own decision: it waits as one that is sent away.
        seq, leaving = self._shared.feed.current.seq, self._shared.leaving
        await self._spending.pay(ended.why)
        await self._ask(ended)
        if bye.status == ISOLATED:
            await leaving.wait(self.name, seq, self._shared.config.leave_after)
        leaving.forget(self.name)
        self._stream.write(lines.ReportTaken(number=bye.number))

    async def _ask(self, *inputs: Input) -> Taken:
        """A supervisor that sends too much waits."""
        await asyncio.sleep(self._share.inputs.spend(identity(self.peer)))
        return await self._shared.ask(*inputs)

    # ------------------------------------------------------------------ conversions

    def _own_job(self) -> JobView | None:
        job = live_jobs(self._shared.feed.current.view).get(self.name)
        return job if job is not None and job.peer == self.peer else None

    def _input(self, begin: lines.JobBegin, run: int, is_running: bool, use: chips.JobUse) -> JobBegun:
        return JobBegun(
            job=self.name,
            kind=begin.kind,
            peer=self.peer,
            run=run,
            is_running=is_running,
            devices=tuple(use.devices),
            policy=conversion.policy(begin),
            processes=tuple(each for each in use.processes if each not in self._found),
        )

    def _chips(self, ask: lines.AskChips) -> lines.ChipReadings:
        view = self._shared.feed.current.view
        job = self._own_job()
        if job is None:
            return lines.ChipReadings(number=ask.number)
        devices, readings = chips.devices_of(view, job), self._shared.readings()
        pids = self._pids.of(holder for each in devices for holder in each.holders or ())
        down = chips.ports_down(view, devices)
        return lines.ChipReadings(
            number=ask.number,
            chips=tuple(
                chips.chip(each, readings.get(each.name, {}), pids, down[each.name]) for each in devices
            ),
        )

    # ------------------------------------------------------------------ its end

    def _refuse(self, why: str) -> None:
        try:
            self._stream.write(lines.SupervisorRefused(why=why))
        except ConnectionEnded:
            return

    def _leave(self) -> None:
        self._begun = None
        for growth in self._growth:
            growth.cancel()
        self._stream.close()
        if self._shared.connected.get(self.name) is self:
            del self._shared.connected[self.name]
            self._shared.ownership.leave(self.name)
            self._shared.leaving.forget(self.name)


def _caller(peer: Peer) -> Caller:
    return Caller(identity=f"uid:{peer.uid}", role=Role.NONE, who=f"uid {peer.uid} pid {peer.pid}")


def identity(peer: Peer) -> str:
    return f"{peer.pid}/{peer.start_time}"
