"""Steps an engine through the content of a file, in the file's own time, and returns the events.

The rule clock is the file's wall time. All devices in the file are announced and read before its first
signal, so that correlation knows how many exist and each verdict follows from its faults. Events of this
start and of loading the tables are dropped. Time stops at the last signal: later deadlines do not fire.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.core.faults.reported import FAULT_ID, SENDER
from nodeagent.core.model import (
    AGENT,
    NODE,
    CatalogChanged,
    DeviceSeen,
    Input,
    Kind,
    PublicFault,
    PublicFaults,
    Signal,
    SourceBack,
    Tick,
)
from nodeagent.core.state.names import part_of
from nodeagent.replay.formats import SignalsOfLog
from nodeagent.replay.log import Log
from nodeagent.replay.matching import TimedSignal, matched
from nodeagent.store.records import StoredEvent
from nodeagent.vendors import DRIVERS

SEQ: Final = 0
"""No store numbers these events."""

_KIND_OF_SOURCE: Final = {name: traits.lists for name, traits in DRIVERS.items() if traits.lists} | {
    "link": Kind.LINK
}
_PCI: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_KIND_OF_DEVICE: Final = {Kind.HOST: Kind.NODE, Kind.PUBLIC: Kind.CHIP}


def moments(parsed: Log | SignalsOfLog, catalog: Catalog, *, trust_userspace: bool) -> list[TimedSignal]:
    """In order of time, equal times as in the file; a log is matched with the catalog's patterns."""
    if isinstance(parsed, Log):
        found: Iterable[TimedSignal] = matched(parsed, catalog.patterns, trust_userspace=trust_userspace)
    else:
        found = parsed.moments
    return sorted(found, key=lambda moment: moment.at_ns)


def replay(ordered: Sequence[TimedSignal], catalog: Catalog) -> Iterator[StoredEvent]:
    """The events that would have been emitted, each with the number 0."""
    if not ordered:
        return
    engine = Engine({catalog.digest: catalog})
    begun_ns = ordered[0].at_ns
    engine.step(begun_ns, CatalogChanged(digest=catalog.digest))
    for device in _devices(ordered, catalog):
        engine.step(begun_ns, device)
        engine.step(begun_ns, SourceBack(source=device.source, device=device.device))
    for moment in ordered:
        outcome = engine.step(moment.at_ns, _input_of(moment.signal))
        for event in outcome.events:
            yield StoredEvent(seq=SEQ, wall_ns=event.at_ns, event=event)


def _input_of(signal: Signal | None) -> Input:
    """What another system reports comes in messages of its own: here, each of one fault."""
    if signal is None or signal.report is None:
        return signal or Tick()
    whose = {SENDER: signal.report.sender, FAULT_ID: signal.report.fault_id}
    fault = PublicFault(
        report=signal.report,
        code=signal.code,
        assertion=signal.assertion,
        devices=(signal.device,),
        evidence={**signal.evidence, **whose},
    )
    return PublicFaults(faults=(fault,))


def _devices(ordered: Iterable[TimedSignal], catalog: Catalog) -> list[DeviceSeen]:
    """The node, and each device in the order in which the file first names it.

    One whose link was reported first is a chip all the same, once a chip's fault comes on it.
    """
    found = {NODE: DeviceSeen(source=AGENT, device=NODE, kind=Kind.NODE, vendor="", identity=NODE)}
    for moment in ordered:
        signal = moment.signal
        if signal is None:
            continue
        name, _ = part_of(signal.device)
        known = found.get(name)
        if known is None or known.kind is Kind.LINK:
            seen = _device(signal, name, catalog)
            found[name] = seen if known is None or seen.kind is Kind.CHIP else known
    return list(found.values())


def _device(signal: Signal, name: str, catalog: Catalog) -> DeviceSeen:
    row = catalog.row(signal.code)
    kind = _KIND_OF_SOURCE.get(signal.source)
    if kind is None:
        kind = _KIND_OF_DEVICE.get(row.kind, row.kind) if row is not None else Kind.CHIP
    return DeviceSeen(
        source=signal.source,
        device=name,
        kind=kind,
        vendor=row.vendor if row is not None else "",
        identity=name,
        attributes={"pci": name} if _PCI.fullmatch(name) else {},
    )
