"""The watch of one run for slow ranks: samples and step times in, ranks that hold up the others out.

A rank is found by the step times that the program reports; without them by the readings of its chip alone, of
a training job. What differs between its chip, or its process, and those of its peers is named with it.
``replay`` applies it to a recording.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nodeagent.job.sample import ProcessSample, RunSample, StepTime
from nodeagent.job.series import SeriesRow
from nodeagent.job.session.values import Slowed, SlowStage
from nodeagent.job.slow.chips import ChipHistory, differences, keeps_up, slow_chips
from nodeagent.job.slow.step_times import BehindRank, StepFindings, StepTimes

TRAINING: Final = "training"

CPU_WAIT: Final = 0.2
"""This share of the time a rank waits for a processor, and twice as much as its peers: then it is named."""

UPDATE_SAMPLES: Final = 3
"""A rank is found between two samples. What the next ones show of its chip is reported once more."""


class SlowWatch:
    def __init__(self, kind: str = TRAINING) -> None:
        self._kind = kind
        self.run_began()

    def run_began(self, run: int = 1) -> None:
        """What is known of the run before is forgotten."""
        self._run = run
        self._times = StepTimes()
        self._has_times = False
        self._chips: dict[str, ChipHistory] = {}
        self._processes: Mapping[int, ProcessSample] = {}
        self._before: Mapping[int, ProcessSample] = {}
        self._seconds = 0.0
        self._last_s: float | None = None
        self._behind: dict[str, _Found] = {}

    @property
    def has_times(self) -> bool:
        """The program reports its step times."""
        return self._has_times

    def timed(self, time: StepTime) -> tuple[Slowed, ...]:
        self._has_times = True
        found = self._times.given(time)
        return tuple(self._changes(found))

    def placed(self, who: str, found: BehindRank) -> tuple[Slowed, ...]:
        """A rank of this node, or the node, that ``job step`` finds slow among those of all nodes."""
        if who in self._behind:
            return ()
        known = self._behind[who] = _Found(found)
        known.differs = self._differences(found)
        return (self._slow(found, known.differs, who),)

    def keeps_up(self, who: str) -> tuple[Slowed, ...]:
        """``job step`` finds it slow no longer."""
        return tuple(self._ended(who))

    def sampled(self, sample: RunSample) -> tuple[Slowed, ...]:
        """A sample that is no newer than the one before is passed over."""
        if self._last_s is not None and sample.t_s <= self._last_s:
            return ()
        self._seconds = 0.0 if self._last_s is None else sample.t_s - self._last_s
        self._last_s = sample.t_s
        self._before, self._processes = self._processes, {each.pid: each for each in sample.processes}
        for chip in sample.chips:
            self._chips.setdefault(chip.name, ChipHistory()).add(sample.t_s, chip)
        if not self._has_times and self._kind == TRAINING:
            return tuple(self._by_chips())
        return tuple(self._updates())

    # ------------------------------------------------------------------ by step times

    def _changes(self, found: StepFindings) -> Iterable[Slowed]:
        for rank in found.even:
            if self._behind.pop(_rank(rank), None) is not None:
                yield Slowed(
                    run=self._run, what=SlowStage.ENDED, who=_rank(rank), why=f"{_rank(rank)} keeps up"
                )
        for each in found.behind:
            known = self._behind[_rank(each.rank)] = _Found(each)
            known.differs = self._differences(each)
            yield self._slow(each, known.differs)

    def _ended(self, who: str) -> Iterable[Slowed]:
        if self._behind.pop(who, None) is not None:
            yield Slowed(run=self._run, what=SlowStage.ENDED, who=who, why=f"{who} keeps up")

    def _updates(self) -> Iterable[Slowed]:
        for who, known in self._behind.items():
            if known.behind is None or known.samples >= UPDATE_SAMPLES:
                continue
            known.samples += 1
            differs = self._differences(known.behind)
            if known.samples == UPDATE_SAMPLES and set(_names(differs)) != set(_names(known.differs)):
                known.differs = differs
                yield self._slow(known.behind, differs, who)

    def _slow(self, found: BehindRank, differs: tuple[str, ...], who: str = "") -> Slowed:
        who, chips = who or _rank(found.rank), self._chips_of(found.pid)
        place = ", ".join((f"pid {found.pid}", *chips) if found.pid else chips)
        name = f"{who} ({place})" if place else who
        named = "; ".join(differs) or "nothing that is read of its chip or its process differs"
        return Slowed(
            run=self._run,
            what=SlowStage.FOUND,
            who=who,
            why=f"{name} holds up its peers: {found.described()}; {named}",
            evidence={
                "rank": str(found.rank),
                **({"pid": str(found.pid)} if found.pid else {}),
                **({"chip": " ".join(chips)} if chips else {}),
                **({"group": found.group} if found.group else {}),
                "score": f"{found.score:.2f}",
                "compute_s": f"{found.compute_s:.4g}",
                "peers_compute_s": f"{found.peers_s:.4g}",
                "since_s": f"{found.since_s:.0f}",
                **({"differs": "; ".join(differs)} if differs else {}),
            },
        )

    # ------------------------------------------------------------------ by readings of chips

    def _by_chips(self) -> Iterable[Slowed]:
        for chip in slow_chips(self._chips):
            if chip.name in self._behind:
                continue
            self._behind[chip.name] = _Found(None)
            found = differences(chip.name, self._chips)
            differs = "; ".join(each for each in found if not each.startswith("clock "))
            yield Slowed(
                run=self._run,
                what=SlowStage.FOUND,
                who=chip.name,
                why=f"{chip.name} holds up its peers: for {chip.seconds:.0f} s its clock is"
                f" {chip.clock_mhz:.0f} MHz in use, theirs {chip.peers_mhz:.0f} MHz"
                + (f"; {differs}" if differs else ""),
                evidence={
                    "chip": chip.name,
                    "score": f"{chip.clock_mhz / chip.peers_mhz:.2f}",
                    "since_s": f"{chip.seconds:.0f}",
                    "differs": "; ".join(found),
                },
            )
        for name, known in list(self._behind.items()):
            if known.behind is None and keeps_up(name, self._chips):
                yield from self._ended(name)

    # ------------------------------------------------------------------ what differs

    def _chips_of(self, pid: int) -> tuple[str, ...]:
        process = self._processes.get(pid)
        return () if process is None else process.chips

    def _differences(self, found: BehindRank) -> tuple[str, ...]:
        of_chips = [
            f"{name}: {differs}"
            for name in self._chips_of(found.pid)
            for differs in differences(name, self._chips)
        ]
        return (*of_chips, *self._cpu_wait(found.pid))

    def _cpu_wait(self, pid: int) -> tuple[str, ...]:
        shares = {each: share for each in self._processes if (share := self._share(each)) is not None}
        own = shares.pop(pid, None)
        if own is None or not shares:
            return ()
        peers = sorted(shares.values())[len(shares) // 2]
        if own < CPU_WAIT or own < 2 * peers:
            return ()
        return (f"it waits {100 * own:.0f} % of the time for a processor, peers {100 * peers:.0f} %",)

    def _share(self, pid: int) -> float | None:
        before, now = self._before.get(pid), self._processes[pid]
        if before is None or before.start_time != now.start_time or not self._seconds:
            return None
        if before.cpu_wait_s is None or now.cpu_wait_s is None:
            return None
        return (now.cpu_wait_s - before.cpu_wait_s) / self._seconds


class _Found:
    """``behind`` is None of a chip that was found by its readings."""

    __slots__ = ("behind", "differs", "samples")

    def __init__(self, behind: BehindRank | None) -> None:
        self.behind = behind
        self.differs: tuple[str, ...] = ()
        self.samples = 0


def _rank(number: int) -> str:
    return f"rank {number}"


def _names(differs: Iterable[str]) -> Iterable[str]:
    """Which readings differ, without their values."""
    return ("".join(letter for letter in each if not letter.isdigit()) for each in differs)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowReplayFinding:
    t_s: float
    slow: Slowed


def replay_slow(rows: Iterable[SeriesRow], kind: str = TRAINING) -> tuple[SlowReplayFinding, ...]:
    """The run begins with the first row. A row's times came before its sample."""
    watch = SlowWatch(kind)
    found = list[SlowReplayFinding]()
    for row in rows:
        for time in row.times:
            found += [SlowReplayFinding(t_s=time.t_s, slow=each) for each in watch.timed(time)]
        found += [SlowReplayFinding(t_s=row.sample.t_s, slow=each) for each in watch.sampled(row.sample)]
    return tuple(found)
