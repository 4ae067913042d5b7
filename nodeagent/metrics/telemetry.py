"""What devices measure, as metrics: a reading ``NAME.PART`` is ``nodeagent_NAME{device, part}``.

A source's reading of itself is ``nodeagent_source_NAME{source, part}``. Only what is observed now is shown:
a device that does not answer has no series, rather than the last value for ever. Nothing is judged.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from prometheus_client.core import Metric

from nodeagent.metrics.health_values import SourceHealth
from nodeagent.metrics.telemetry_help import HELP

PREFIX: Final = "nodeagent_"
SOURCE_PREFIX: Final = "nodeagent_source_"
SOURCE: Final = "*"
"""The name under which a worker reports readings of its source as a whole."""

COUNTER_SUFFIX: Final = "_total"
_UNKNOWN: Final = "Reading of a device or a source, as its driver names it."
_NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_]")


def telemetry(sources: Sequence[SourceHealth], taken: Collection[str]) -> Iterator[Metric]:
    """A family for each name, in their order. ``taken`` are families that no reading may join: what a
    driver calls so is left out. Of two sources that measure the same the first is shown.
    """
    families: dict[str, Metric] = {}
    shown: set[tuple[str, str, str, str]] = set()
    for source in sources:
        for device, readings in source.readings.items():
            of_source = device == SOURCE
            prefix = SOURCE_PREFIX if of_source else PREFIX
            at = ("source", source.source) if of_source else ("device", device)
            for reading, value in readings.items():
                name, _, part = reading.partition(".")
                metric = prefix + _NOT_IN_A_NAME.sub("_", name)
                if (metric, *at, part) in shown or metric.removesuffix(COUNTER_SUFFIX) in taken:
                    continue
                shown.add((metric, *at, part))
                family = families.get(metric)
                if family is None:
                    family = families[metric] = _family(metric, name)
                labels = dict([at, ("part", part)]) if part else dict([at])
                family.add_sample(metric, labels, value)
    for metric in sorted(families):
        yield families[metric]


def _family(metric: str, name: str) -> Metric:
    is_counter = metric.endswith(COUNTER_SUFFIX)
    kind = "counter" if is_counter else "gauge"
    return Metric(
        metric.removesuffix(COUNTER_SUFFIX) if is_counter else metric, HELP.get(name, _UNKNOWN), kind
    )
