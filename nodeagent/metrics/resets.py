"""Actions as Prometheus metrics: how many ended since start, and how; and those in progress."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from nodeagent.core.machines.resets import OUTCOME
from nodeagent.core.model import ActionState, Event, EventKind, ResetMode, View

_RESET = "reset"
_MODES = tuple(mode for mode in ResetMode if mode is not ResetMode.OFF)


class ActionCounts:
    """Counts the ends of actions as events report them; each attempt ends once."""

    def __init__(self) -> None:
        self._ended: dict[tuple[str, str], int] = dict.fromkeys(
            ((mode, state) for mode in _MODES for state in ActionState), 0
        )

    def count(self, event: Event) -> None:
        if event.kind is EventKind.ACTION_FINISHED:
            key = (event.evidence.get("mode", ""), event.evidence.get(OUTCOME, ""))
            if key in self._ended:
                self._ended[key] += 1

    def family(self) -> Metric:
        ended = CounterMetricFamily(
            "nodeagent_actions",
            "Actions that ended since start, by how; each attempt is one.",
            labels=["kind", "mode", "state"],
        )
        for (mode, state), number in self._ended.items():
            ended.add_metric([_RESET, mode, state], number)
        return ended


def actions_in_progress(view: View) -> Iterator[Metric]:
    in_progress = GaugeMetricFamily(
        "nodeagent_actions_in_progress", "Actions that have not ended.", labels=["kind", "mode", "stage"]
    )
    stages = Counter((each.mode, each.stage) for each in view.resets if not each.has_ended)
    for (mode, stage), number in stages.items():
        in_progress.add_metric([_RESET, mode, stage], number)
    yield in_progress
