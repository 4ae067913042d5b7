"""Baselines: kept by the part, begun anew by an order, gone with the part."""

from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    Answer,
    Baseline,
    BaselineSeen,
    Carried,
    DeviceGone,
    Input,
    Operator,
    Refused,
)
from tests.core.build import begin, catalog, emitted, ns, order, run, seen

PART = "UUID-1"
OTHER = "UUID-2"
KEPT = BaselineSeen(source="ascend", identity=PART, number=0, content="all is well")


def engine_with(*steps: Input) -> Engine:
    engine = begin(catalog())
    run(engine, [(1, seen("npu1", PART, "0000:4b:00.0")), *((2, step) for step in steps)])
    return engine


def kept(engine: Engine) -> list[tuple[str, int, str]]:
    return [(each.device_id, each.number, each.content) for each in engine.view().baselines]


def anew(device: str = "npu1") -> Operator:
    return order("rebaseline", device, who="uid:0", reason="the bridge was taken out")


def answer_to(engine: Engine, given: Operator) -> Answer:
    answer = engine.step(ns(3), given).answer
    assert answer is not None
    return answer


def test_a_baseline_is_kept_by_the_part_and_stored_once() -> None:
    engine = engine_with()
    assert engine.step(ns(2), KEPT).records == (KEPT,)
    assert engine.step(ns(3), KEPT).records == ()
    assert kept(engine) == [(PART, 0, "all is well")]


def test_one_of_a_part_that_nobody_lists_is_not_kept() -> None:
    engine = engine_with()
    unknown = BaselineSeen(source="ascend", identity=OTHER, number=0, content="well")
    assert engine.step(ns(2), unknown).records == ()
    assert kept(engine) == []


def test_it_outlives_a_compaction() -> None:
    (carried,) = [each for each in engine_with(KEPT).carry() if isinstance(each.cell, Baseline)]
    engine = begin(catalog())
    engine.replay(ns(1), seen("npu1", PART, "0000:4b:00.0"))
    engine.replay(ns(1), Carried(cell=carried.cell))
    assert kept(engine) == [(PART, 0, "all is well")]


def test_another_part_in_the_slot_has_none() -> None:
    engine = engine_with(KEPT, seen("npu1", OTHER, "0000:4b:00.0"))
    assert kept(engine) == []


def test_a_part_that_is_forgotten_has_none() -> None:
    gone = DeviceGone(source="ascend", device="npu1", reason="no longer listed")
    engine = engine_with(KEPT, gone, order("forget", "npu1", who="uid:0"))
    assert kept(engine) == []


def test_after_an_order_to_begin_anew_what_was_seen_before_is_not_taken() -> None:
    engine = engine_with(KEPT)
    events = run(engine, [(3, anew())])
    assert kept(engine) == [(PART, 1, "")]
    assert emitted(events) == [("notice", "npu1", "")]
    assert events[0].why == "its present state is right, by order of uid:0: the bridge was taken out"
    assert engine.step(ns(4), KEPT).records == ()
    since = BaselineSeen(source="ascend", identity=PART, number=1, content="as it is")
    assert engine.step(ns(5), since).records == (since,)
    assert kept(engine) == [(PART, 1, "as it is")]


def test_the_order_is_refused_where_there_is_nothing_to_begin_anew() -> None:
    engine = engine_with()
    assert answer_to(engine, anew("npu9")) == Answer(
        refused=Refused.UNKNOWN, reason="device: 'npu9' is not known"
    )
    assert answer_to(engine, anew()) == Answer(
        refused=Refused.NOT_POSSIBLE, reason="the driver ascend remembers nothing of npu1"
    )
    gone = DeviceGone(source="ascend", device="npu1", reason="no longer listed")
    run(engine, [(4, KEPT), (5, gone)])
    assert answer_to(engine, anew()) == Answer(
        refused=Refused.NOT_POSSIBLE, reason="no driver lists npu1; wait until one does"
    )
