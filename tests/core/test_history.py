"""What a source reports of the time before it came: one thing after the other, judged as one."""

from nodeagent.core.engine import Engine
from nodeagent.core.model import CatalogChanged, EventKind, Input, Kind, Level, Started, Tick
from tests.core.build import back, catalog, device_view, emitted, ns, of, repeat, row, run, xid

TABLES = catalog(
    row("XID_119", Level.RESTART_NPU),
    row("AER_CORR", kind=Kind.LINK),
    frequency=[repeat("XID_119", 3, correlation_ns=ns(30))],
)
FIRST, SECOND = "0000:17:00.0", "0000:18:00.0"
START_S = 2000.0


def first_start() -> Engine:
    """Of a node of which nothing is known yet: no device, no source."""
    engine = Engine({TABLES.digest: TABLES})
    run(engine, [(START_S, Started(boot_id="boot-1", version="1"))])
    run(engine, [(START_S, CatalogChanged(digest=TABLES.digest))])
    return engine


def line(at_s: float, device: str, code: str = "XID_119") -> tuple[float, Input]:
    """A line of the kernel's ring, read at the start."""
    return START_S, xid(code, device, backdated=True, last_ns=ns(at_s))


def test_what_came_on_two_chips_is_correlated_though_one_line_is_read_after_the_other() -> None:
    engine = first_start()
    lines = [
        line(at_s + chip, device) for at_s in (100, 500, 1000) for chip, device in enumerate((FIRST, SECOND))
    ]
    events = run(engine, [*lines, (START_S + 1, back("kmsg")), (START_S + 100, Tick())])
    assert [event.device for event in of(events, EventKind.SUPPRESSED)] == [FIRST, SECOND]
    assert of(events, EventKind.PROMOTED) == []


def test_the_other_chip_may_be_named_by_a_later_line_only() -> None:
    engine = first_start()
    lines = [*(line(at_s, FIRST) for at_s in (100, 500, 1000)), line(1001, SECOND)]
    events = run(engine, [*lines, (START_S + 1, back("kmsg")), (START_S + 100, Tick())])
    assert [event.device for event in of(events, EventKind.SUPPRESSED)] == [FIRST]
    assert of(events, EventKind.PROMOTED) == []


def test_what_one_chip_showed_alone_is_promoted_once_all_is_read() -> None:
    engine = first_start()
    events = run(engine, [line(at_s, FIRST) for at_s in (100, 500, 1000)])
    assert of(events, EventKind.PROMOTED) == []
    (promoted,) = of(run(engine, [(START_S + 1, back("kmsg"))]), EventKind.PROMOTED)
    assert (promoted.device, promoted.at_ns) == (FIRST, ns(1030) + 1)


def test_a_history_that_never_ends_is_waited_for_as_long_as_a_start() -> None:
    engine = first_start()
    events = run(engine, [line(at_s, FIRST) for at_s in (100, 500, 1000)])
    events += run(engine, [(START_S + 30, Tick())])
    assert of(events, EventKind.PROMOTED) == []
    assert emitted(of(run(engine, [(START_S + 31, Tick())]), EventKind.PROMOTED)) == [
        ("promoted", FIRST, "XID_119")
    ]


def test_a_chip_whose_link_was_reported_first_is_one_for_correlation_too() -> None:
    engine = first_start()
    lines = [
        line(at_s + chip, device) for at_s in (100, 500, 1000) for chip, device in enumerate((FIRST, SECOND))
    ]
    events = run(engine, [line(50, FIRST, "AER_CORR"), *lines, (START_S + 1, back("kmsg"))])
    assert [event.device for event in of(events, EventKind.SUPPRESSED)] == [FIRST, SECOND]
    assert {view.name: view.kind for view in engine.view().devices} == {
        "node": Kind.NODE,
        FIRST: Kind.CHIP,
        SECOND: Kind.CHIP,
    }


def test_what_opens_nothing_makes_no_chip_of_a_link() -> None:
    """It may not even be stored, where too many others came before it."""
    tables = catalog(row("AER_CORR", kind=Kind.LINK), row("XID_161", notice=True))
    engine = Engine({tables.digest: tables})
    run(engine, [(0, CatalogChanged(digest=tables.digest)), (0, Started(boot_id="boot-1", version="1"))])
    run(engine, [(1, xid("AER_CORR", FIRST)), (2, xid("XID_161", FIRST))])
    assert device_view(engine, FIRST).kind is Kind.LINK
