"""Orders and holds as they were stored before holds had owners of their own: they mean what they meant."""

from collections.abc import Mapping

import msgspec

from nodeagent.core.model import Carried, Hold, HoldKind, Operator
from tests.core.build import begin, catalog, emitted, ns, order, run, wait

STORED: tuple[tuple[int, Mapping[str, object]], ...] = (
    (1, {"who": "uid:0", "what": "isolate", "device": "npu0", "reason": "RMA"}),
    (2, {"who": "uid:1000", "what": "isolate", "device": "npu0", "reason": "bench", "until_ns": ns(100)}),
    (3, {"who": "uid:0", "what": "isolate", "device": "npu0", "reason": "burn-in", "until_ns": ns(50)}),
    (
        4,
        {
            "who": "uid:0",
            "what": "quiesce",
            "device": "node",
            "reason": "driver upgrade",
            "until_ns": ns(200),
        },
    ),
    (5, {"who": "uid:0", "what": "quiesce", "device": "node", "reason": "it takes longer"}),
    (6, {"who": "uid:1000", "what": "quiesce", "device": "node", "reason": "bench"}),
    (7, {"who": "uid:1000", "what": "resume", "device": "node"}),
    (8, {"who": "uid:0", "what": "isolate", "device": "npu1", "reason": "fan swap"}),
    (9, {"who": "uid:1000", "what": "isolate", "device": "npu1", "reason": "bench"}),
    (10, {"who": "uid:0", "what": "release", "device": "npu1", "reason": "done"}),
    (11, {"who": "uid:0", "what": "isolate", "device": "npu1", "reason": "again"}),
)
"""Seconds, and the fields that were written of an ``Operator``."""

HELD = [
    ("die0/hold:uid:0#1", "uid:0", "burn-in", ns(3), ns(50)),
    ("die0/hold:uid:1000#1", "uid:1000", "bench", ns(2), ns(100)),
    ("slot:node/quiesce:uid:0", "uid:0", "it takes longer", ns(5), None),
    ("die1/hold:uid:1000#1", "uid:1000", "bench", ns(9), None),
    ("die1/hold:uid:0#2", "uid:0", "again", ns(11), None),
]
"""What that version made of them."""


def stored(fields: Mapping[str, object]) -> Operator:
    written = {"reason": "", "until_ns": None, "only": "", **fields}
    return msgspec.msgpack.decode(msgspec.msgpack.encode(written), type=Operator)


def test_stored_orders_are_replayed_to_the_holds_that_they_made() -> None:
    engine = begin(catalog(), chips=2)
    for at_s, fields in STORED:
        engine.replay(ns(at_s), stored(fields))
    engine.resume(ns(20))
    holds = engine.view().holds
    assert [(each.id, each.owner, each.reason, each.since_ns, each.until_ns) for each in holds] == HELD
    assert emitted(wait(engine, 60)) == [("released", "npu0", "")]


def test_a_stored_hold_is_its_users_under_whatever_name_he_releases_it() -> None:
    written = {
        "id": "die0/hold:uid:0#1",
        "device_id": "die0",
        "owner": "uid:0",
        "reason": "RMA",
        "since_ns": ns(1),
        "until_ns": None,
        "kind": "isolation",
    }
    hold = msgspec.msgpack.decode(msgspec.msgpack.encode(written), type=Hold)
    engine = begin(catalog())
    engine.replay(ns(1), Carried(cell=hold))
    engine.resume(ns(1))
    assert engine.view().holds == (hold,)
    assert (hold.kind, hold.set_by) == (HoldKind.ISOLATION, "")
    assert run(engine, [(2, order("release", who="uid:1000", owner="bob"))]) == []
    assert emitted(run(engine, [(3, order("release", who="uid:0", owner="alice"))])) == [
        ("released", "npu0", "")
    ]


def test_a_new_order_beside_a_stored_quiesce_has_an_id_of_its_own() -> None:
    engine = begin(catalog())
    engine.replay(ns(1), stored(STORED[4][1]))
    engine.resume(ns(1))
    run(engine, [(2, order("quiesce", device="node", who="uid:0"))])
    assert [each.id for each in engine.view().holds] == [
        "slot:node/quiesce:uid:0",
        "slot:node/quiesce:uid:0#1",
    ]
