"""A simple twin of a supervisor: begins, runs, stops or does not, lies, dies, and repeats what it said.

It keeps its own record of what truly ran, and notes in ``world.overlaps`` where two runs of its job did at
once though the daemon could know of both.
"""

from dataclasses import dataclass, field

from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import (
    Claims,
    Holder,
    JobBegun,
    JobEnded,
    JobPolicy,
    Peer,
    RunReported,
    RunReportKind,
    Wanted,
)
from tests.simulation.world import Activity, Part, World

_CGROUPS = 6
_STOPS = ("soon", "soon", "soon", "late", "never", "lies", "stuck")


@dataclass(slots=True)
class Supervisor:
    """``connected`` is the life of the daemon to which it is, ``wish`` what that wanted last. ``left`` is a
    process of which it said that it has gone, and of which the daemon knows.
    """

    world: World
    name: str
    parts: list[Part]
    policy: JobPolicy
    pid: int
    run: int = 1
    process: Holder | None = None
    number: int = 0
    every: list[RunReported] = field(default_factory=list)
    unsaid: list[RunReported] = field(default_factory=list)
    connected: int = -1
    wish: Wanted | None = None
    wished_run: int = 0
    stops_in: int = -1
    left: Holder | None = None

    # ------------------------------------------------------------------ the daemon

    def listen(self) -> None:
        """Connect anew where the daemon is another, and hear what it wants and has taken."""
        world = self.world
        if not world.listening:
            self.connected = -1
        elif self.connected != world.lives:
            self.connected = world.lives
            world.say(self._begun(), *self.unsaid)
        elif (known := world.wanted.get(self.name)) is not None:
            self.wish, self.wished_run, taken = known
            self.unsaid = [each for each in self.unsaid if each.number > taken]

    def _begun(self) -> JobBegun:
        return JobBegun(
            job=self.name,
            kind="training",
            peer=Peer(pid=self.pid, start_time=1, uid=1000),
            run=self.run,
            is_running=self.process is not None,
            devices=tuple(part.name for part in self.parts),
            policy=self.policy,
        )

    def say(self, what: RunReportKind, status: int | None = None) -> None:
        self.number += 1
        said = RunReported(job=self.name, number=self.number, run=self.run, what=what, status=status)
        self.every.append(said)
        self.unsaid.append(said)
        if self.connected == self.world.lives:
            self.world.say(said)

    # ------------------------------------------------------------------ the command

    def may_start(self) -> bool:
        """The gate is open where the daemon opened it last, or never could be asked."""
        if self.connected == self.world.lives:
            return self.wish is Wanted.RUN and self.wished_run >= self.run
        if self.wish is None:
            return not self.world.proposed
        return self.wish is Wanted.RUN

    def start(self) -> None:
        if self.connected == self.world.lives:
            self.run = max(self.run, self.wished_run)
        for part in self.parts:
            if self.left is not None and self.left in (part.holders or ()):
                self.world.overlaps.append(
                    f"run {self.run} of {self.name} began on {part.name} beside {self.left}"
                )
        self.process = Holder(
            pid=1000 * self.pid + self.run, start_time=self.run, command="python", job=self.name
        )
        self.stops_in = -1
        for part in self.parts:
            part.holders = (*(part.holders or ()), self.process)
        self.say(RunReportKind.STARTED)

    def end(self, what: RunReportKind | None, status: int | None = None, leaves_it: bool = False) -> None:
        """Its process is gone, or, where it lies, stays for a while. ``what`` is what it says."""
        process, self.process = self.process, None
        if process is not None and leaves_it:
            was_listed = any(process in (part.reported_holders or ()) for part in self.parts)
            self.left = process if was_listed else None
            self.world.begin(
                _goes(self.world, self.parts, process), self.world.rng.choice((20, 90)) * SECOND_NS
            )
        elif process is not None:
            _remove(self.parts, process)
            if self.world.rng.random() < 0.5:
                for part in self.parts:
                    self.world.report_holders(part)
        if what is not None:
            self.say(what, status)
            self.run += 1

    def obey(self) -> None:
        """It was asked to stop, or to leave."""
        if self.stops_in < 0:
            how = self.world.rng.choice(_STOPS)
            if self.wish is Wanted.STOP and how == "lies":
                self.end(RunReportKind.STOPPED, leaves_it=True)
                return
            if how == "stuck" and self.world.rng.random() < 0.3:
                self.say(RunReportKind.UNKILLABLE)
            times = {"soon": (0, 1, 3), "late": (40, 58, 59, 60, 61)}
            self.stops_in = self.world.rng.choice(times.get(how, (300,)))
        elif self.stops_in == 0 or self.wish is Wanted.LEAVE:
            self.end(RunReportKind.STOPPED)
        else:
            self.stops_in -= 1

    def begin_anew(self) -> None:
        """Another process goes on with its journal: it ends what is left, and says everything again."""
        self.pid += 1
        self.connected = -1
        if self.process is not None:
            self.end(RunReportKind.EXITED)
        self.unsaid = list(self.every)


def _remove(parts: list[Part], process: Holder) -> None:
    for part in parts:
        part.holders = tuple(one for one in part.holders or () if one != process)


def _goes(world: World, parts: list[Part], process: Holder) -> Activity:
    _remove(parts, process)
    for part in parts:
        world.report_holders(part)
    yield 0


# ---------------------------------------------------------------------- its life


def supervises(world: World) -> Activity:
    """A job on a chip, or on two of a group, over minutes or hours."""
    number = world.rng.randint(1, _CGROUPS)
    name = f"slurm:{number}.0"
    if name in world.wanted or name in world.supervised:
        return
    part = world.rng.choice(world.chips())
    same = [one for one in world.chips() if one.group and one.group == part.group and one is not part]
    parts = [part, *world.rng.sample(same, world.rng.choice((0, 0, 1)) if same else 0)]
    world.supervised.add(name)
    claims = world.rng.random() < 0.6
    if claims:
        _claim(world, parts, number, True)
    supervisor = Supervisor(world, name, parts, _policy(world), pid=world.rng.randint(1, 500))
    boot = world.boot
    yield from _lives(supervisor, world.rng.choice((40, 200, 900, 3000)))
    supervisor.end(None)
    while world.boot == boot and name in world.wanted:
        if world.listening:
            world.say(JobEnded(job=name, why="it has left", status=world.rng.choice((0, 1, 75, 86, None))))
        yield 5 * SECOND_NS
    if claims and world.boot == boot:
        _claim(world, parts, number, False)
    world.supervised.discard(name)
    yield 0


def _claim(world: World, parts: list[Part], number: int, claimed: bool) -> None:
    for part in parts:
        world.say(Claims(device=part.name, job=f"slurm:{number}", kind="training", claimed=claimed))


def _policy(world: World) -> JobPolicy:
    in_place = world.rng.random() < 0.7
    return JobPolicy(in_place=in_place, yields=world.rng.random() < 0.6, reschedules=world.rng.random() < 0.5)


def _lives(supervisor: Supervisor, steps: int) -> Activity:
    """A step is a second while something is to be done, else more."""
    world, boot = supervisor.world, supervisor.world.boot
    for _ in range(steps):
        supervisor.listen()
        for part in supervisor.parts:
            if world.rng.random() < 0.8:
                world.report_holders(part)
        if not _steps(supervisor):
            return
        is_calm = supervisor.process is not None and supervisor.wish is Wanted.RUN
        yield (world.rng.choice((5, 20, 60)) if is_calm else 1) * SECOND_NS
        if world.boot != boot:
            return


def _steps(supervisor: Supervisor) -> bool:
    """False once it leaves."""
    world, chance = supervisor.world, supervisor.world.rng.random()
    if supervisor.process is None:
        if supervisor.wish is Wanted.LEAVE:
            return False
        if supervisor.may_start():
            supervisor.start()
    elif supervisor.wish in (Wanted.STOP, Wanted.LEAVE) and supervisor.connected == world.lives:
        supervisor.obey()
    elif chance < 0.02 or (world.proposed and chance > 0.96):
        supervisor.end(RunReportKind.EXITED, status=1)
    elif chance < 0.04:
        supervisor.say(
            world.rng.choice((RunReportKind.SUSPECTED, RunReportKind.SUSPENDED, RunReportKind.CLEARED))
        )
    if 0.04 <= chance < 0.05:
        supervisor.begin_anew()
    return chance < 0.998
