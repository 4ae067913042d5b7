"""What one sample shows of the whole run, with those before it: what works, what is still, what is not known.

It remembers processes and chips, and judges no time: how long it has been so is the clock's.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodeagent.job.hang.chips import IDLE_USE, MILD, ChipWatch, Pulse
from nodeagent.job.hang.processes import Members, Others, RankProcess, Roles
from nodeagent.job.hang.rates import ProcessKey, ProcessRate, Rates, key_of
from nodeagent.job.hang.settings import HangSettings
from nodeagent.job.sample import ChipSample, ProcessSample, RunSample


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMoment:
    """What a sample shows. ``works``, ``unknown`` and ``chips_unknown`` are reasons, "" for none."""

    began_s: float
    now_s: float
    works: str
    """Why the run does not stand still."""

    unknown: str
    """Why this sample shows nothing."""

    chips_unknown: str
    """Why this sample shows nothing of the chips."""

    quiet: bool
    """All ranks are quiet."""

    flat: bool
    """All chips that can be read are flat."""

    readable: bool
    """All chips can be read."""

    vary: bool
    """All chips are in use, and the use of some varies."""

    still_since_s: float | None
    """Since when all ranks are quiet and all chips show no work."""

    dead_since_s: float | None
    """Since when, besides, no rank of an idle chip uses CPU."""

    calm: bool
    """No rank uses CPU, but those that may wait for a chip in use."""

    flat_since_s: float | None
    """Since when all chips are flat, whatever the ranks do."""

    high_since_s: float | None
    """Since when all chips report that they are in use, and show no sign of work."""

    what: str
    """All of this as a text."""

    ranks_replaced: bool
    """None of the ranks of the sample before is there any more, and others are."""


class MeasuredRun:
    """The processes and chips of one run, since its launcher began its ranks."""

    def __init__(self, settings: HangSettings, before: "MeasuredRun | None" = None) -> None:
        """``before``: what is usual of a chip is what was so there, at first."""
        self._settings = settings
        self._rates = Rates()
        self._members = Members()
        self._others = Others(settings)
        self._ranks: dict[ProcessKey, RankProcess] = {}
        self._users: dict[str, frozenset[ProcessKey]] = {}
        self._alive = frozenset[ProcessKey]()
        self._chips: dict[str, ChipWatch] = {}
        self._before: Mapping[str, ChipWatch] = {} if before is None else before._chips_that_worked()
        self._last_s: float | None = None
        self._newest: Mapping[ProcessKey, ProcessRate] = {}

    def measured(self, sample: RunSample) -> RunMoment:
        now_s = sample.t_s
        began_s = now_s if self._last_s is None else self._last_s
        is_gap = self._last_s is not None and now_s - began_s > self._settings.gap_s
        self._last_s = now_s
        seconds = None if is_gap or now_s == began_s else now_s - began_s
        rates, traffic = self._rates.measured(sample, seconds)
        self._newest = rates
        roles = self._members.of(sample)
        self._alive = frozenset(key_of(each) for each in (*roles.ranks, *roles.others))
        ranks_replaced = self._follow_ranks(roles, rates, now_s)
        self._follow_chips(sample, traffic, began_s)
        others = self._others.measured(roles.others, rates)
        unknown = _unknown_of(roles, sample) or others
        if is_gap:
            unknown = f"there was no sample for {now_s - began_s:.0f} s"
        return self._moment(began_s, now_s, unknown, roles, ranks_replaced=ranks_replaced)

    def learn(self) -> None:
        """The newest sample is of a healthy run."""
        for key, rank in self._ranks.items():
            rank.learn(self._newest.get(key))
        for chip in self._chips.values():
            chip.learn()

    def doubt(self) -> None:
        """The newest samples may be of a hang: nothing of them is usual."""
        for rank in self._ranks.values():
            rank.doubt()
        for chip in self._chips.values():
            chip.doubt()

    def unlearn(self) -> None:
        for rank in self._ranks.values():
            rank.unlearn()
        for chip in self._chips.values():
            chip.unlearn()

    def _follow_ranks(self, roles: Roles, rates: Mapping[ProcessKey, ProcessRate], now_s: float) -> bool:
        """Whether none of those that were there is there any more, and others are."""
        keys = [key_of(each) for each in roles.ranks]
        if not keys:
            return False
        replaced = bool(self._ranks) and not any(key in self._ranks for key in keys)
        self._ranks = {key: self._ranks.get(key) or RankProcess(self._settings) for key in keys}
        for key, rank in self._ranks.items():
            rank.measured(now_s, rates.get(key))
        for chip in {chip for each in roles.ranks for chip in each.chips}:
            self._users[chip] = frozenset(key_of(each) for each in roles.ranks if chip in each.chips)
        return replaced

    def _follow_chips(self, sample: RunSample, traffic: Mapping[str, float], began_s: float) -> None:
        reported: dict[str, ChipSample] = {each.name: each for each in sample.chips}
        for name in reported:
            if name not in self._chips:
                self._chips[name] = ChipWatch(name, self._settings)
                if name in self._before:
                    self._chips[name].follows(self._before[name])
        for name, chip in self._chips.items():
            reading = reported.get(name)
            is_profiled = reading is not None and reading.profiling
            chip.measured(began_s, None if is_profiled else reading, traffic.get(name))

    def _chips_that_worked(self) -> Mapping[str, ChipWatch]:
        """Also where a run was too short to show what is usual."""
        return {**self._before, **{name: chip for name, chip in self._chips.items() if chip.has_worked}}

    def _moment(
        self, began_s: float, now_s: float, unknown: str, roles: Roles, *, ranks_replaced: bool
    ) -> RunMoment:
        chips = list(self._chips.values())
        readable = [each for each in chips if each.readable]
        works = self._working_rank() or next(
            (f"{each.name} is in use" for each in readable if each.pulse is Pulse.LIVES), ""
        )
        chips_unknown = "" if chips else "no chip of the run is known"
        for chip in chips:
            if not chip.readable:
                chips_unknown = f"{chip.name} cannot be read"
            elif chip.pulse is Pulse.UNKNOWN:
                chips_unknown = f"of {chip.name} only the use is known"
        if not unknown and not all(each.known for each in self._ranks.values()):
            unknown = "a rank cannot be read"
        is_quiet = bool(roles.ranks) and all(each.quiet_since_s is not None for each in self._ranks.values())
        still_since_s = self._still_since() if is_quiet and not chips_unknown and not works else None
        return RunMoment(
            began_s=began_s,
            now_s=now_s,
            works=works,
            unknown=unknown,
            chips_unknown=chips_unknown,
            quiet=is_quiet and not unknown,
            flat=all(each.is_flat for each in readable),
            readable=bool(chips) and len(readable) == len(chips),
            vary=any(each.varies for each in chips) and all(each.is_used for each in chips),
            still_since_s=still_since_s,
            dead_since_s=None if still_since_s is None else self._dead_since(still_since_s, roles),
            calm=self._are_calm(roles),
            flat_since_s=_latest(each.flat_since_s for each in chips),
            high_since_s=_latest(each.since_s if each.pulse is Pulse.HIGH else None for each in chips),
            what=self._description(),
            ranks_replaced=ranks_replaced,
        )

    def _working_rank(self) -> str:
        return next(
            (
                f"rank process {key.pid} works"
                for key, rank in self._ranks.items()
                if rank.known and rank.quiet_since_s is None
            ),
            "",
        )

    def _still_since(self) -> float | None:
        """Since when the last of the ranks and chips is still; all of them are."""
        return _latest(
            (
                *(each.quiet_since_s for each in self._ranks.values()),
                *(each.since_s for each in self._chips.values()),
            )
        )

    def _dead_since(self, since_s: float, roles: Roles) -> float | None:
        """None where a rank of an idle chip uses CPU: it may compute what the chip waits for."""
        for chip in self._chips.values():
            if chip.pulse is not Pulse.IDLE:
                continue
            for rank in self._ranks_of(chip.name, roles):
                calm_s = self._ranks[key_of(rank)].calm_since_s
                if calm_s is None:
                    return None
                since_s = max(since_s, calm_s)
        return since_s

    def _are_calm(self, roles: Roles) -> bool:
        in_use = {each.name for each in self._chips.values() if each.readable and each.level > IDLE_USE}
        return all(
            self._ranks[key_of(rank)].calm_since_s is not None
            for rank in roles.ranks
            if not self._chips or not in_use.issuperset(rank.chips or self._chips)
        )

    def _ranks_of(self, chip: str, roles: Roles) -> list[ProcessSample]:
        """Those that hold it, or did last and live on: none, if they have ended. All of them where it never
        was known who does.
        """
        users = self._users.get(chip, frozenset())
        ranks = [each for each in roles.ranks if key_of(each) in users]
        is_known = users and (ranks or users.isdisjoint(self._alive))
        return ranks if is_known else list(roles.ranks)

    def _description(self) -> str:
        levels = Counter(round(each.level) for each in self._chips.values() if each.readable)
        shown = ", ".join(f"{count} at {level} %" for level, count in sorted(levels.items()))
        return f"{len(self._ranks)} ranks are quiet, chips are flat ({shown or 'none can be read'})"


def _latest(since: Iterable[float | None]) -> float | None:
    """Since when it holds of all; None if it does not, or if there are none."""
    of = list(since)
    known = [each for each in of if each is not None]
    return max(known) if known and len(known) == len(of) else None


def _unknown_of(roles: Roles, sample: RunSample) -> str:
    if not roles.ranks:
        return "no rank process is there"
    if roles.stopped:
        stopped = roles.stopped[0]
        return f"process {stopped.pid} is stopped, or a debugger holds it (state {stopped.state})"
    for chip in sample.chips:
        if chip.profiling:
            return f"{chip.name} is being profiled"
        if chip.handling not in MILD:
            return f"{chip.name} has a fault ({chip.handling})"
    return ""
