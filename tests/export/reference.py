"""The tables of fields in ``docs/export.md``; ``python -m tests.export.reference`` writes them there."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nodeagent.export import cloudevents, records, syslog
from nodeagent.export.severity import LogSeverity

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "export.md"
BEGIN: Final = "<!-- begin: python -m tests.export.reference -->\n"
END: Final = "<!-- end -->\n"

_OTLP: Final = {
    "Timestamp": "when it happened, nanoseconds; ObservedTimestamp is the same",
    "SeverityNumber, SeverityText": ", ".join(f"{each.opentelemetry} `{each.text}`" for each in LogSeverity),
    "EventName": "`nodeagent.KIND`, such as `nodeagent.raised`; or `nodeagent.resync`",
    "Body": "a text for people",
    "`log.record.uid`": "the id of the record: the key",
    "`nodeagent.*`": "each key of the record, such as `nodeagent.seq` and `nodeagent.device`",
    "`nodeagent.evidence.*`": "what the source showed",
    "resource": "`service.name` `nodeagent`, `service.version`, `host.name`; `host.id` and"
    " `service.instance.id`: the machine-id; and what `OTEL_RESOURCE_ATTRIBUTES` has",
}


def tables() -> str:
    return "\n".join(
        (
            _table("Keys of a record", "key", records.MEANINGS),
            _table("OpenTelemetry", "field", _OTLP),
            _table("CloudEvents", "attribute", cloudevents.MEANINGS),
            _table("Syslog", "field", syslog.MEANINGS),
        )
    )


def _table(heading: str, first: str, rows: Mapping[str, str]) -> str:
    lines = [f"### {heading}", "", f"| {first} | means |", "|---|---|"]
    lines += [
        f"| {name if '`' in name or ' ' in name else f'`{name}`'} | {text} |" for name, text in rows.items()
    ]
    return "\n".join(lines) + "\n"


def written(text: str) -> str:
    """The document with the tables of today."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}{tables()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
