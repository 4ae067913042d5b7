"""A preview of other tables says what a reload would change, and changes nothing."""

from nodeagent.core.catalog.catalog import ClearOn
from nodeagent.core.engine import Engine
from nodeagent.core.model import Handling, Level, Verdict
from nodeagent.core.preview import LevelChange, Preview, StanceChange
from tests.core.build import HBM, begin, catalog, ns, repeat, row, run, signal

BEFORE = catalog(
    row(HBM, Level.RESTART_NPU),
    row("SLOW", Level.SUB_HEALTH, clear_on=ClearOn(operator=True)),
    frequency=[repeat("PreSeparateNPU", 1)],
)
AFTER = catalog(
    row(HBM, Level.SUB_HEALTH),
    row("SLOW", Level.SUB_HEALTH, clear_on=ClearOn(quiet_ns=ns(10))),
    digest="second",
)
FREE = (Verdict.ALLOW, Handling.NONE)


def test_levels_ends_and_devices_that_would_change_are_named() -> None:
    engine = begin(BEFORE, chips=3)
    run(
        engine,
        [(1, signal(HBM)), (2, signal("SLOW", "once", "npu1")), (3, signal("PreSeparateNPU", device="npu2"))],
    )
    run(engine, [(100, signal("PreSeparateNPU", "recover", "npu2"))])
    assert engine.preview(AFTER) == Preview(
        levels=(
            LevelChange(
                id=f"die0/{HBM}#1",
                device="npu0",
                code=HBM,
                before=Level.RESTART_NPU,
                after=Level.SUB_HEALTH,
            ),
            LevelChange(id="die1/SLOW#1", device="npu1", code="SLOW", before=Level.SUB_HEALTH, after=None),
            LevelChange(
                id="die2/repeat-PreSeparateNPU#1",
                device="npu2",
                code="PreSeparateNPU",
                before=Level.MANUALLY_SEPARATE_NPU,
                after=None,
            ),
        ),
        devices=(
            StanceChange(
                device="npu0",
                before=(Verdict.ISOLATE, Handling.RESCHEDULE),
                after=(Verdict.ALLOW, Handling.JOB_STRATEGY),
            ),
            StanceChange(device="npu1", before=(Verdict.ALLOW, Handling.JOB_STRATEGY), after=FREE),
            StanceChange(device="npu2", before=(Verdict.ISOLATE, Handling.RESCHEDULE), after=FREE),
        ),
    )


def test_the_engine_is_as_it_was_and_knows_nothing_of_those_tables() -> None:
    engine = begin(BEFORE)
    run(engine, [(1, signal(HBM))])
    carried, deadline = engine.carry(), engine.next_deadline()
    engine.preview(AFTER)
    assert (engine.carry(), engine.next_deadline(), engine.digest) == (carried, deadline, "first")


def test_tables_in_which_nothing_open_differs_change_nothing() -> None:
    engine = begin(BEFORE)
    run(engine, [(1, signal(HBM))])
    assert engine.preview(catalog(row(HBM, Level.RESTART_NPU), digest="second")) == Preview()


def test_a_preview_before_the_first_tables_is_total() -> None:
    assert Engine({}).preview(AFTER) == Preview()
