"""What other systems report, as Prometheus metrics: messages and faults since start, by sender."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric

from nodeagent.metrics.health_values import Health


def public_metrics(health: Health) -> Iterator[Metric]:
    """The senders are those of the configuration; all other names are one, ``(unknown)``."""
    messages = CounterMetricFamily(
        "nodeagent_public_messages",
        "Messages of other systems since start: accepted, or the status they were refused with.",
        labels=["sender", "result"],
    )
    for (sender, result), count in health.public_messages.items():
        messages.add_metric([sender, result], count)
    faults = CounterMetricFamily(
        "nodeagent_public_faults",
        "Faults in accepted messages since start, by what became of them.",
        labels=["sender", "outcome"],
    )
    for (sender, outcome), count in health.public_faults.items():
        faults.add_metric([sender, outcome], count)
    yield from (messages, faults)
