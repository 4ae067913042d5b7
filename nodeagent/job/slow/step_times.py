"""The ranks that are slow by their own step times.

A step is judged once every rank of a group has reported it. What is compared is the time that a rank works
by itself, never the time between steps. Times of different nodes are not compared: how long something lasts
is measured by one rank's own reports.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import median
from typing import Final, NamedTuple

from nodeagent.job.sample import StepTime
from nodeagent.job.slow.rules import (
    AGREE,
    AGREE_AT_START,
    AGREE_SHARE,
    AGREE_SHARE_AT_START,
    EVEN_SCORE,
    EVEN_STEPS,
    FAR_BEHIND,
    LEAST_PEERS,
    MOVES_STEPS,
    REPEAT_S,
    RULES,
    START_STEPS,
    STEADY,
    WARM_UP_STEPS,
    StepRule,
)

KEPT_STEPS: Final = 120
MOST_APART: Final = 16
"""A rank that is so many steps behind the newest reports no more."""

WAITS_STEPS: Final = 2
"""A step is judged so many steps later even if a rank has not reported it: datagrams are lost where a socket
takes ten of them (unix(7), max_dgram_qlen).
"""

MAX_RANKS: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class BehindRank:
    """A rank that is slow. ``compute_s`` and ``peers_s`` are medians over the newest ``steps``; ``since_s``:
    for how long. ``at_start``: it was so from its first step.
    """

    rank: int
    place: str
    pid: int
    group: str
    rule: str
    steps: int
    compute_s: float
    peers_s: float
    since_s: float
    at_start: bool

    @property
    def score(self) -> float:
        return self.peers_s / self.compute_s

    def described(self) -> str:
        start = ", since its first step" if self.at_start else ""
        return (
            f"it takes {self.compute_s:.3g} s by itself for a step, they {self.peers_s:.3g} s, over"
            f" {self.steps} steps{start}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFindings:
    behind: tuple[BehindRank, ...] = ()
    even: tuple[int, ...] = ()
    """Ranks that were behind, and are no longer."""


_NOTHING: Final = StepFindings()


class _Judged(NamedTuple):
    t_s: float
    compute_s: float
    peers_s: float

    @property
    def score(self) -> float:
        return self.peers_s / self.compute_s


class _Rank:
    """``since_s``: since when each rule holds, by its name. ``kept_up``: once, in this run, for a while."""

    __slots__ = (
        "even_since_s",
        "first_step",
        "found",
        "group",
        "judged",
        "kept_up",
        "last_step",
        "pid",
        "place",
        "quiet_until_s",
        "since_s",
        "slow_at",
    )

    def __init__(self, time: StepTime, place: str) -> None:
        self.pid = time.pid
        self.place = place
        self.group = time.group
        self.first_step = time.step
        self.last_step = time.step
        self.judged = deque[_Judged](maxlen=KEPT_STEPS)
        self.since_s: dict[str, float] = {}
        self.even_since_s: float | None = None
        self.kept_up = False
        self.found: StepRule | None = None
        self.quiet_until_s = 0.0
        self.slow_at: int | None = None

    def newest(self, steps: int) -> list[_Judged]:
        return list(islice(self.judged, max(0, len(self.judged) - steps), None))

    def note_that_it_keeps_up(self) -> None:
        if len(self.judged) >= EVEN_STEPS and not self.kept_up:
            scores = [each.score for each in self.newest(EVEN_STEPS)]
            self.kept_up = median(scores) >= EVEN_SCORE


class _Group:
    """``steps``: the times by step and rank, of steps that not every rank has reported yet."""

    __slots__ = ("newest", "ranks", "steps")

    def __init__(self) -> None:
        self.ranks: dict[int, _Rank] = {}
        self.steps: dict[int, dict[int, StepTime]] = {}
        self.newest = 0

    def take_out(self, rank: int) -> None:
        self.ranks.pop(rank, None)
        for times in self.steps.values():
            times.pop(rank, None)

    def complete(self, waits_steps: int) -> Iterator[dict[int, StepTime]]:
        """The steps that are reported by every rank that still reports, or old enough, from the oldest."""
        present = [each for each in self.ranks.values() if self.newest - each.last_step < MOST_APART]
        for step in sorted(self.steps):
            awaited = sum(step >= each.first_step + WARM_UP_STEPS for each in present)
            if len(self.steps[step]) < awaited and self.newest - step < waits_steps:
                return
            yield self.steps.pop(step)


class StepTimes:
    """``place``: where a rank runs, if several ranks of one place may be slow together (a node).
    ``waits_steps``: for how many steps a time may come late. ``least_share``: a step is judged if this share
    of the ranks has reported it.
    """

    def __init__(self, waits_steps: int = WAITS_STEPS, least_share: float = 0.0) -> None:
        self._waits_steps = waits_steps
        self._least_share = least_share
        self._groups: dict[str, _Group] = {}
        self._group_of: dict[int, str] = {}
        self._number = 0

    def given(self, time: StepTime, place: str = "") -> StepFindings:
        if time.compute_s <= 0 or (len(self._group_of) >= MAX_RANKS and time.rank not in self._group_of):
            return _NOTHING
        ended = self._left_behind(time)
        group = self._groups.setdefault(time.group, _Group())
        self._group_of[time.rank] = time.group
        state = group.ranks.setdefault(time.rank, _Rank(time, place))
        state.last_step = time.step
        is_newest = time.step > group.newest or len(group.ranks) == 1
        group.newest = max(group.newest, time.step) if len(group.ranks) > 1 else time.step
        if time.step < state.first_step + WARM_UP_STEPS:
            return StepFindings(even=ended)
        times = group.steps.setdefault(time.step, {})
        times[time.rank] = time
        behind, even = list[BehindRank](), list(ended)
        if is_newest or len(times) == len(group.ranks):
            for complete in group.complete(self._waits_steps):
                if len(complete) > max(LEAST_PEERS, self._least_share * len(group.ranks)):
                    found = self._judge(group, complete)
                    behind += found.behind
                    even += found.even
        return StepFindings(behind=tuple(behind), even=tuple(even))

    def _left_behind(self, time: StepTime) -> tuple[int, ...]:
        """Another process has taken the rank, or its steps begin again: what was known is of no use."""
        name = self._group_of.get(time.rank)
        group = None if name is None else self._groups[name]
        state = None if group is None else group.ranks[time.rank]
        if group is None or state is None:
            return ()
        if (state.pid, name) == (time.pid, time.group) and time.step >= state.last_step:
            return ()
        group.take_out(time.rank)
        if not group.ranks:
            del self._groups[state.group]
        return () if state.found is None else (time.rank,)

    def _judge(self, group: _Group, times: Mapping[int, StepTime]) -> StepFindings:
        self._number += 1
        ordered = sorted(time.compute_s for time in times.values())
        judged = {rank: group.ranks[rank] for rank in times}
        for rank, time in times.items():
            peers_s = _median_without(ordered, time.compute_s)
            judged[rank].judged.append(_Judged(time.t_s, time.compute_s, peers_s))
        return self._found(judged)

    def _found(self, judged: Mapping[int, _Rank]) -> StepFindings:
        behind, even = list[BehindRank](), list[int]()
        for state in judged.values():
            state.note_that_it_keeps_up()
            _note_streaks(state)
            if _is_half_slow(state):
                state.slow_at = self._number
        for rank, state in judged.items():
            now = state.judged[-1]
            if state.found is not None:
                if _keeps_up_again(state):
                    state.quiet_until_s = now.t_s + REPEAT_S
                    state.found = None
                    even.append(rank)
                continue
            rule = self._rule_of(rank, state, judged)
            if rule is not None and now.t_s >= state.quiet_until_s:
                state.found = rule
                behind.append(_behind(rank, state, rule))
        return StepFindings(behind=tuple(behind), even=tuple(even))

    def _rule_of(self, rank: int, state: _Rank, judged: Mapping[int, _Rank]) -> StepRule | None:
        for rule in RULES:
            since_s = state.since_s.get(rule.name)
            if since_s is None or state.judged[-1].t_s - since_s < rule.lasts_s:
                continue
            is_even = bool(state.group) or state.kept_up
            if rule.known_even and not is_even:
                continue
            peers = _elsewhere(rank, state, judged)
            if not is_even and not (_begins(state) and _is_alone(state, peers)):
                continue
            if rule is FAR_BEHIND and self._moves(peers):
                continue
            windows = [each.newest(rule.steps) for each in peers]
            if _agree(windows, at_start=not is_even) and _is_steady(windows, rule):
                return rule
        return None

    def _moves(self, peers: Iterable[_Rank]) -> bool:
        """Another rank was slow shortly before, and is not now."""
        return any(
            each.slow_at is not None
            and each.slow_at < self._number - 1
            and self._number - each.slow_at <= MOVES_STEPS
            for each in peers
        )


def _note_streaks(state: _Rank) -> None:
    for rule in RULES:
        if state.judged[-1].score > rule.score and rule.name not in state.since_s:
            continue
        slow = [each for each in state.newest(rule.steps) if each.score <= rule.score]
        # The window may not be full yet: so many slow steps are enough.
        if len(slow) >= rule.slow_steps:
            state.since_s.setdefault(rule.name, slow[0].t_s)
        else:
            state.since_s.pop(rule.name, None)
    if state.found is not None:
        newest = state.newest(state.found.steps)
        is_even = median(each.score for each in newest) >= EVEN_SCORE
        state.even_since_s = (state.even_since_s or newest[0].t_s) if is_even else None


def _keeps_up_again(state: _Rank) -> bool:
    assert state.found is not None
    since_s = state.even_since_s
    return since_s is not None and state.judged[-1].t_s - since_s >= state.found.lasts_s


def _is_half_slow(state: _Rank) -> bool:
    if state.judged[-1].score > FAR_BEHIND.score:
        return False
    window = state.newest(FAR_BEHIND.steps)
    return 2 * sum(each.score <= FAR_BEHIND.score for each in window) > FAR_BEHIND.steps


def _elsewhere(rank: int, state: _Rank, judged: Mapping[int, _Rank]) -> list[_Rank]:
    """Its peers; of ranks on nodes, those of other nodes, for all of one node may be slow."""
    return [
        each
        for other, each in judged.items()
        if other != rank and (not state.place or each.place != state.place)
    ]


def _is_alone(state: _Rank, peers: Sequence[_Rank]) -> bool:
    """No rank elsewhere is slow in the same way, and there are two places to compare with: those that always
    were so may do other work.
    """
    places = {each.place for each in peers}
    return not any(map(_is_half_slow, peers)) and (not state.place or len(places) >= LEAST_PEERS)


def _begins(state: _Rank) -> bool:
    return len(state.judged) <= START_STEPS


def _is_steady(windows: Sequence[Sequence[_Judged]], rule: StepRule) -> bool:
    """Two peers are compared with each other: the slow rank is half of what each is compared with else."""
    scores = [each.score for window in windows for each in window]
    if len(windows) == LEAST_PEERS:
        pairs = zip(*(reversed(window) for window in windows), strict=False)
        scores = [first.compute_s / second.compute_s for first, second in pairs]
    near = sum(STEADY <= score <= 1 / STEADY for score in scores)
    return near >= rule.steady_peers * len(scores)


def _agree(windows: Sequence[Sequence[_Judged]], *, at_start: bool) -> bool:
    """Most peers take about the same time."""
    medians = [median(each.compute_s for each in window) for window in windows]
    if len(medians) < LEAST_PEERS:
        return False
    within, share = (AGREE_AT_START, AGREE_SHARE_AT_START) if at_start else (AGREE, AGREE_SHARE)
    middle = median(medians)
    near = sum(abs(each - middle) <= within * middle for each in medians)
    return near >= share * len(medians)


def _behind(rank: int, state: _Rank, rule: StepRule) -> BehindRank:
    window = state.newest(rule.steps)
    return BehindRank(
        rank=rank,
        place=state.place,
        pid=state.pid,
        group=state.group,
        rule=rule.name,
        steps=len(window),
        compute_s=median(each.compute_s for each in window),
        peers_s=median(each.peers_s for each in window),
        since_s=window[-1].t_s - state.since_s[rule.name],
        at_start=not state.kept_up,
    )


def _median_without(ordered: Sequence[float], value: float) -> float:
    """Of all but one that has this value."""
    at = bisect_left(ordered, value)
    left = len(ordered) - 1

    def other(index: int) -> float:
        return ordered[index if index < at else index + 1]

    middle = left // 2
    return other(middle) if left % 2 else (other(middle - 1) + other(middle)) / 2
