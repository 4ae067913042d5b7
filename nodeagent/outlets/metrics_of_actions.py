"""Actions as Prometheus metrics: how many ended since start, and how; and those that go on."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from nodeagent.core.model import ActionState, Event, EventKind, ResetMode, ResetStage, View

_RESET = "reset"
_MODES = tuple(mode for mode in ResetMode if mode is not ResetMode.OFF)


class ActionCounts:
    """Counts the ends of actions as events tell them; each attempt ends once."""

    def __init__(self) -> None:
        self._ended: dict[tuple[str, str], int] = dict.fromkeys(
            ((mode, state) for mode in _MODES for state in ActionState), 0
        )

    def count(self, event: Event) -> None:
        if event.kind is EventKind.ACTION_FINISHED:
            key = (event.evidence.get("mode", ""), event.why.partition(":")[0])
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


def actions_that_go_on(view: View) -> Iterator[Metric]:
    going_on = GaugeMetricFamily(
        "nodeagent_actions_in_progress", "Actions that have not ended.", labels=["kind", "mode", "stage"]
    )
    stages = Counter((each.mode, each.stage) for each in view.resets if each.stage is not ResetStage.ENDED)
    for (mode, stage), number in stages.items():
        going_on.add_metric([_RESET, mode, stage], number)
    yield going_on
