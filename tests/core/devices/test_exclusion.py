"""A device that the configuration excludes is listed, and neither judged nor acted upon."""

from dataclasses import replace

from nodeagent.core.catalog.codes import canonical
from nodeagent.core.model import Affects, DeviceSeen, EventKind, Kind, Level, Verdict
from tests.core.build import (
    active,
    back,
    begin,
    catalog,
    device_view,
    emitted,
    order,
    row,
    run,
    seen,
    signal,
    xid,
)

WHY = "excluded by agent.exclude_devices"


def excluded(device: str, identity: str, pci: str) -> DeviceSeen:
    listed = seen(device, identity, pci)
    return replace(listed, attributes={**listed.attributes, "excluded": WHY})


def test_nothing_that_any_source_reports_of_it_is_taken() -> None:
    engine = begin(catalog(row("XID_79", Level.SEPARATE_NPU), row("DEAD", Level.SEPARATE_NPU)), chips=0)
    run(engine, [(1, excluded("npu0", "die0", "0000:3b:00.0")), (1, back())])
    events = run(
        engine,
        [
            (2, signal("DEAD")),
            (3, active("DEAD", begun_s=3)),
            (4, xid("XID_79")),
            (5, signal("DEAD", device="npu0/gi3")),
        ],
    )
    assert [event for event in events if event.kind is EventKind.RAISED] == []
    assert engine.view().conditions == ()
    view = device_view(engine, "npu0")
    assert (view.verdict, [reason.text for reason in view.reasons]) == (Verdict.UNKNOWN, [WHY])


def test_what_was_open_on_it_closes_and_a_persons_isolation_stays() -> None:
    engine = begin(catalog(row("DEAD", Level.SEPARATE_NPU)))
    run(engine, [(1, signal("DEAD")), (2, order("isolate", "npu0"))])
    events = run(engine, [(3, excluded("npu0", "die0", "0000:00:00.0"))])
    assert ("cleared", "npu0", "DEAD") in emitted(events)
    assert (len(engine.view().conditions), len(engine.view().holds)) == (0, 1)
    run(engine, [(4, seen("npu0", "die0", "0000:00:00.0")), (5, signal("DEAD"))])
    assert [each.code for each in engine.view().conditions] == ["DEAD"]


def test_a_port_that_drains_the_chips_behind_it_leaves_it_alone() -> None:
    port = row("PORT_DEAD", Level.PRE_SEPARATE_FAULT, kind=Kind.LINK, affects=Affects.CHIPS_BEHIND)
    engine = begin(catalog(port))
    listed = replace(seen("eth0", kind=Kind.LINK, source="link"), attributes={"chips": "npu0"})
    run(
        engine,
        [(1, excluded("npu0", "die0", "0000:00:00.0")), (1, listed), (2, signal("PORT_DEAD", device="eth0"))],
    )
    assert canonical("PORT_DEAD") in {each.code for each in engine.view().conditions}
    assert device_view(engine, "npu0").verdict is Verdict.UNKNOWN
