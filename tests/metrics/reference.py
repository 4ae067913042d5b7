"""The table of all metrics in ``docs/metrics.md``; ``python -m tests.metrics.reference`` writes it there."""

from pathlib import Path
from typing import Any, Final

from prometheus_client.core import Metric

from nodeagent.metrics import telemetry
from nodeagent.metrics.collector import NodeMetrics
from nodeagent.metrics.daemon import Health, SourceHealth
from nodeagent.store.event_feed import EventFeed
from tests.api.stage import FACTS

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "metrics.md"
BEGIN: Final = "<!-- begin: python -m tests.metrics.reference -->\n"
END: Final = "<!-- end -->\n"

_HEALTH: Final = Health(sources=(SourceHealth(source="ascend", state="ready"),))
_SUFFIXES: Final = {"counter": "_total", "info": "_info"}


def table() -> str:
    no_ledger: Any = None  # only what counts events needs one
    metrics = NodeMetrics(feed=EventFeed(), ledger=no_ledger, facts=FACTS, health=lambda: _HEALTH)
    own = [(_name(each), each.type, each.documentation) for each in metrics.collect()]
    readings = [
        (f"nodeagent_{name}", "counter" if name.endswith("_total") else "gauge", text)
        for name, text in telemetry.HELP.items()
    ]
    lines = ["| metric | type | means |", "|---|---|---|"]
    lines += [f"| `{name}` | {kind} | {text} |" for name, kind, text in sorted(own)]
    lines += [
        "",
        "Readings. Those of a source as a whole are `nodeagent_source_...`, with the label `source`.",
        "",
        "| metric | type | means |",
        "|---|---|---|",
    ]
    lines += [f"| `{name}` | {kind} | {text} |" for name, kind, text in sorted(readings)]
    return "\n".join(lines) + "\n"


def _name(family: Metric) -> str:
    return family.name + _SUFFIXES.get(family.type, "")


def written(text: str) -> str:
    """The document with the table of today."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
