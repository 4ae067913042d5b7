"""Reads ``[sources.NAME]``: how each source reports faults. What follows from it is the core's."""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct, field

from nodeagent.core.catalog.catalog import OnceHold, SourceTraits
from nodeagent.core.catalog.codes import canonical
from nodeagent.tables.sections.schema import Code, UpToOneHour
from nodeagent.toml.fields import Report, read_form, shown
from nodeagent.toml.source import ParsedFile

Traits = Mapping[str, SourceTraits]

NETWORK_CODES: Final = ("81078603", "81078607", "110000002", "110001024")
"""Those that MindCluster's device plug-in takes for faults of a chip's network ports."""

DEFAULT_TRAITS: Final[Traits] = {
    "ascend": SourceTraits(
        once_hold=OnceHold.ALWAYS, graded=True, network_codes=NETWORK_CODES, network_parts=("083",)
    ),
    "kmsg": SourceTraits(burst_ns=180_000_000_000, once_hold=OnceHold.NO_ROW),
    "nvidia": SourceTraits(burst_ns=180_000_000_000),
}
"""The traits of sources that no table names: tables and stored catalogs may be older than these keys."""

Part = Annotated[str, Meta(pattern=r"\A[0-7][0-9A-F]{2}\Z")]


class SourceForm(Struct, frozen=True, kw_only=True):
    """``[sources.NAME]``, where NAME is that of the driver, or ``kmsg``, the kernel log."""

    burst_ns: UpToOneHour = field(default=0, name="burst")
    once_hold: OnceHold = OnceHold.NO_QUIET_TIME
    graded: bool = False
    network_codes: Annotated[
        tuple[Code, ...], Meta(max_length=64, description="a list of codes in quotes")
    ] = ()
    network_parts: Annotated[
        tuple[Part, ...],
        Meta(max_length=64, description="a list of parts, each three hexadecimal digits up to 7FF"),
    ] = ()


def read_sources(source: ParsedFile, report: Report) -> Traits:
    """The sources of the file; what is wrong is reported and left out."""
    table = source.data.get("sources", {})
    if not isinstance(table, Mapping):
        report(("sources",), f"{shown(table)} is given where tables such as [sources.kmsg] are needed")
        return {}
    found = {}
    for name, value in table.items():
        form = read_form(SourceForm, value, ("sources", name), report)
        if form is not None:
            codes = tuple(map(canonical, form.network_codes))
            found[name] = SourceTraits(**{**msgspec.structs.asdict(form), "network_codes": codes})
    return found


def merged(layers: list[Traits]) -> Traits:
    """A later layer wins per source."""
    return {name: traits for layer in layers for name, traits in layer.items()}
