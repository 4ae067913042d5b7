"""Resets that the record knows of and the store does not: they count towards the limits."""

from nodeagent.core.model import NODE, ResetsRecorded
from tests.core.build import ns
from tests.core.resets.ring import Ring, ring_catalog

SIX_HOURS_S = 6 * 3600


def refused(ring: Ring) -> str:
    found = ring.engine.dry_run_reset("npu1")
    assert found is not None
    return found.refused


def recorded(device_id: str, *at_s: float) -> ResetsRecorded:
    return ResetsRecorded(resets_ns=((device_id, tuple(map(ns, at_s))),))


def test_a_reset_that_a_lost_store_forgot_counts() -> None:
    ring = Ring(ring_catalog(limit=2, node_limit=3))
    ring.do(recorded("die1", -10, -5))
    assert refused(ring) == "npu1 had 2 resets within 6 h"


def test_it_counts_for_the_node_too() -> None:
    ring = Ring(ring_catalog(limit=2, node_limit=3))
    ring.do(recorded(NODE, -10, -5))
    found = ring.engine.dry_run_reset("npu1")
    assert found is not None
    assert {each.device: each.resets for each in found.used} == {"npu0": 0, "npu1": 0, "node": 2}


def test_a_reset_before_the_window_counts_no_more() -> None:
    ring = Ring(ring_catalog(limit=2, node_limit=2))
    ring.do(recorded("die1", -SIX_HOURS_S - 1, -5))
    assert refused(ring) == ""


def test_what_the_store_knows_as_well_counts_once() -> None:
    ring = Ring(ring_catalog(limit=2, node_limit=2))
    ring.propose_and_start()
    ring.help()
    ring.do(recorded("die1", ring.at_s - 1))
    assert refused(ring) == ""


def test_a_record_that_was_emptied_takes_nothing_back() -> None:
    ring = Ring(ring_catalog(limit=1, node_limit=1))
    ring.propose_and_start()
    ring.help()
    ring.do(recorded("die1"))
    assert refused(ring) == "npu1 had 1 resets within 6 h"
