"""A named series, and what a watch in mode ``restart`` is to find in it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from nodeagent.job.hang.settings import HangSettings
from nodeagent.job.hang.watch import ReplayFinding, replay
from nodeagent.job.model import HangMode
from nodeagent.job.series import SampleSeries
from nodeagent.job.session.values import HangStage
from tests.job.hang.parts import Act, series


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Minutes since the first sample, None: never. ``confirmed_min``: confirmed, and not acted on."""

    acts_min: float | None = None
    confirmed_min: float | None = None
    suspected_min: float | None = None
    ends: tuple[HangStage, ...] = ()


NEVER: Final = Expected()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    acts: tuple[Act, ...]
    expected: Expected
    scene: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def series(self) -> SampleSeries:
        return series(self.name, *self.acts, **self.scene)


class Library:
    """Cases by name."""

    def __init__(self) -> None:
        self.cases: dict[str, Case] = {}

    def add(
        self, name: str, *acts: Act, expected: Expected, settings: dict[str, Any] | None = None, **scene: Any
    ) -> None:
        assert name not in self.cases
        self.cases[name] = Case(name=name, acts=acts, expected=expected, scene=scene, settings=settings or {})


def found_in(
    case: Case, change: Callable[[SampleSeries], SampleSeries] | None = None
) -> tuple[ReplayFinding, ...]:
    made = case.series()
    made = change(made) if change else made
    return replay(made.rows, settings_of(made, **case.settings))


def settings_of(made: SampleSeries, **changed: Any) -> HangSettings:
    values: dict[str, Any] = {
        "hang_time_s": made.header.T_min * 60,
        "period_s": made.header.period_s,
        "kind": made.header.kind,
        "mode": HangMode.RESTART,
    }
    return HangSettings(**(values | changed))


def summary(found: tuple[ReplayFinding, ...]) -> Expected:
    """The first of each, in minutes."""

    def first(what: HangStage, *, acts: bool | None = None) -> float | None:
        return next(
            (
                round(each.t_s / 60, 2)
                for each in found
                if each.hung.what is what and (acts is None or each.hung.acts == acts)
            ),
            None,
        )

    return Expected(
        acts_min=first(HangStage.CONFIRMED, acts=True),
        confirmed_min=first(HangStage.CONFIRMED, acts=False),
        suspected_min=first(HangStage.SUSPECTED),
        ends=tuple(
            each.hung.what for each in found if each.hung.what in (HangStage.CLEARED, HangStage.DROPPED)
        ),
    )
