"""What the worker process of each source costs, read from ``/proc`` when the page is made.

A worker that ends meanwhile has no series. Nothing is kept between two pages.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from nodeagent.metrics.daemon import Health
from nodeagent.system.processes import SYSTEM, USER, stat_of

_RSS: Final = 21
"""A field of ``stat_of``: the resident pages."""


def worker_metrics(health: Health, procfs: Path = Path("/proc")) -> Iterator[Metric]:
    cpu = CounterMetricFamily(
        "nodeagent_worker_cpu_seconds",
        "Processor time of the source's worker since it began.",
        labels=["source"],
    )
    memory = GaugeMetricFamily(
        "nodeagent_worker_resident_memory_bytes", "Memory of the source's worker.", labels=["source"]
    )
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    for source in health.sources:
        if source.pid is None:
            continue
        try:
            _, fields = stat_of(procfs / str(source.pid))
        except OSError:
            continue
        cpu.add_metric([source.source], (int(fields[USER]) + int(fields[SYSTEM])) / ticks)
        memory.add_metric([source.source], int(fields[_RSS]) * page)
    yield from (cpu, memory)
