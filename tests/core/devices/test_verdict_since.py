"""Since when a device has its verdict: the time of the last change, also after a restart and a compaction."""

from nodeagent.core.engine import Engine
from nodeagent.core.model import Started, Verdict
from nodeagent.core.reconcile import PublishedState, published_by
from tests.core.build import begin, catalog, device_view, ns, run, signal, wait

TABLES = catalog()
DRAINED, ISOLATED = "PreSeparateNPU", "SeparateNPU"


def since_s(engine: Engine, device: str = "npu0") -> tuple[Verdict, float]:
    view = device_view(engine, device)
    return view.verdict, view.verdict_since_ns / 1e9


def test_it_is_the_time_of_the_last_change_of_the_verdict() -> None:
    engine = begin(TABLES)
    run(engine, [(10, signal(DRAINED))])
    assert since_s(engine) == (Verdict.NO_NEW_JOBS, 10)
    run(engine, [(20, signal(ISOLATED))])
    assert since_s(engine) == (Verdict.ISOLATE, 20)
    run(engine, [(30, signal("NotHandleFault")), (40, signal(DRAINED, "recover"))])
    assert since_s(engine) == (Verdict.ISOLATE, 20)
    run(engine, [(50, signal(ISOLATED, "recover"))])
    assert since_s(engine) == (Verdict.ALLOW, 50)


def test_a_device_that_was_always_well_has_none() -> None:
    engine = begin(TABLES)
    run(engine, [(10, signal("NotHandleFault"))])
    assert since_s(engine) == (Verdict.ALLOW, 0)


def test_it_outlasts_a_compaction_and_the_replay_of_a_restart() -> None:
    engine = begin(TABLES)
    run(engine, [(10, signal(ISOLATED))])
    carried = engine.carry()
    later = signal("SubHealthFault")
    events = run(engine, [(20, later)])

    rebuilt = Engine({TABLES.digest: TABLES})
    for cell in carried:
        rebuilt.replay(ns(10), cell)
    rebuilt.replay(ns(20), later)
    rebuilt.resume(ns(20))
    published = published_by(carried)
    published.add(events)
    assert rebuilt.reconcile(published)[1] == 0
    assert since_s(rebuilt) == (Verdict.ISOLATE, 10)
    rebuilt.step(ns(30), Started(boot_id="boot-1", version="2"))
    assert since_s(rebuilt) == (Verdict.ISOLATE, 10)


def test_a_change_that_only_a_replay_finds_is_of_the_time_of_its_event() -> None:
    engine = begin(TABLES)
    carried = engine.carry()
    run(engine, [(10, signal(ISOLATED))])

    rebuilt = Engine({TABLES.digest: TABLES})
    for cell in carried:
        rebuilt.replay(0, cell)
    rebuilt.replay(ns(10), signal(ISOLATED))
    rebuilt.resume(ns(15))
    rebuilt.reconcile(PublishedState())
    wait(rebuilt, 20)
    assert since_s(rebuilt) == (Verdict.ISOLATE, 15)
