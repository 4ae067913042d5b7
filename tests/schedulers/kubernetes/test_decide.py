"""What the bridge does, order for order: decisions played against a cluster of values."""

from dataclasses import replace

import pytest

from nodeagent.client import Verdict
from nodeagent.schedulers.kubernetes.cluster import CONDITION, EFFECT, TAINT, Scope
from nodeagent.schedulers.kubernetes.facts import SnapshotFacts, facts_of
from nodeagent.schedulers.kubernetes.state import ObjectSeen, SetTaints, Target
from tests.schedulers.kubernetes.snapshots import broken, device, node, snapshot, well
from tests.schedulers.kubernetes.world import SETTINGS, World

THEIRS = {"key": "maintenance", "value": "disk", "effect": "NoSchedule"}


def said(world: World) -> tuple[object, object, object]:
    assert world.condition is not None
    return world.condition["status"], world.condition["reason"], world.condition["message"]


def test_a_fault_taints_the_node_first_then_says_why_and_is_acknowledged_last() -> None:
    world = World()
    world.hear(broken())
    assert world.kinds() == ["ReadObject NODE", "SetTaints NODE", "SetCondition CONDITION", "Ack DAEMON"]
    assert world.taints == ({"key": TAINT, "value": "80E18005", "effect": EFFECT},)
    assert said(world) == ("False", "AcceleratorsIsolated", "nodeagent: npu3 80E18005 #813")
    assert world.acked == 813


def test_the_taint_goes_only_once_all_has_been_well_for_a_minute() -> None:
    world = World()
    world.hear(broken())
    world.pass_time(100)
    world.hear(well(seq=820))
    assert said(world) == ("True", "AcceleratorsAllowWork", "nodeagent: every accelerator allows work #820")
    world.pass_time(59)
    assert world.our_taints == ["80E18005"]
    world.pass_time(1)
    assert world.our_taints == []


def test_a_fault_within_that_minute_begins_it_anew() -> None:
    world = World()
    world.hear(broken())
    world.hear(well(820))
    world.pass_time(50)
    world.hear(broken(seq=821))
    world.hear(well(822))
    world.pass_time(59)
    assert world.our_taints == ["80E18005"]


def test_that_all_is_well_may_be_said_again_within_that_minute() -> None:
    world = World()
    world.hear(broken())
    for seq in (820, 821):
        world.hear(well(seq))
        world.pass_time(30)
    assert world.our_taints == []


def test_a_daemon_that_falls_silent_within_that_minute_leaves_the_taint() -> None:
    world = World()
    world.hear(broken())
    world.hear(well(820))
    world.be_silent()
    world.pass_time(3600)
    assert world.our_taints == ["80E18005"]
    world.hear(well(820))
    world.pass_time(60)
    assert world.our_taints == []


def test_taints_of_others_stay_whatever_is_done() -> None:
    world = World(taints=(THEIRS,))
    world.hear(broken())
    assert world.taints[0] == THEIRS
    world.hear(well(820))
    world.pass_time(61)
    assert world.taints == (THEIRS,)


def test_what_is_unknown_changes_no_taint() -> None:
    world = World()
    world.hear(broken(Verdict.UNKNOWN, ""))
    assert (world.our_taints, said(world)[0]) == ([], "Unknown")
    world.hear(broken())
    world.hear(broken(Verdict.UNKNOWN, "", seq=830))
    world.pass_time(3600)
    assert world.our_taints == ["80E18005"]


@pytest.mark.parametrize(
    ("scope", "facts", "expected"),
    [
        ("chip", broken(Verdict.NO_NEW_JOBS), ["80E18005"]),
        ("node", broken(), []),
        ("node", facts_of(snapshot((node(Verdict.ISOLATE, "0300000D"),))), ["0300000D"]),
        ("off", broken(), []),
    ],
    ids=["a chip that takes no new jobs", "a chip, but only the node counts", "the node", "off"],
)
def test_it_depends_on_the_scope_what_taints_the_node(
    scope: Scope, facts: SnapshotFacts, expected: list[str]
) -> None:
    world = World(settings=replace(SETTINGS, scope=scope))
    world.hear(facts)
    assert world.our_taints == expected


@pytest.mark.parametrize(
    ("code", "value"),
    [("[0x00f103b0,155904,na,na]", "0x00f103b0_155904_na_na"), ("X" * 80, "X" * 63), ("", "")],
)
def test_a_code_that_is_no_label_is_made_one(code: str, value: str) -> None:
    world = World()
    world.hear(broken(code=code))
    assert world.our_taints == [value]


def test_many_concerns_are_named_strictest_first_and_cut_to_a_line() -> None:
    chips = [device(f"npu{number}", Verdict.NO_NEW_JOBS, code="80DE1801") for number in range(10)]
    world = World()
    world.hear(facts_of(snapshot((node(), *chips, device("gpu0", Verdict.ISOLATE, code="XID_79")))))
    assert said(world)[2] == (
        "nodeagent: gpu0 XID_79, npu0 80DE1801, npu1 80DE1801, npu2 80DE1801, npu3 80DE1801, npu4 80DE1801,"
        " npu5 80DE1801, npu6 80DE1801 and 3 more #812"
    )


def test_what_says_the_same_is_written_again_only_as_a_sign_of_life() -> None:
    world = World()
    world.hear(broken())
    world.kinds()
    world.hear(broken(seq=814))
    assert world.kinds() == ["Ack DAEMON"]
    world.pass_time(299)
    assert world.kinds() == []
    assert world.condition is not None
    before = world.condition
    world.pass_time(1)
    assert world.kinds() == ["SetCondition CONDITION"]
    assert (world.condition["message"], world.condition["lastTransitionTime"]) == (
        "nodeagent: npu3 80E18005 #813",
        before["lastTransitionTime"],
    )
    assert world.condition["lastHeartbeatTime"] != before["lastHeartbeatTime"]


def test_a_bridge_that_starts_anew_writes_nothing_that_stands_already() -> None:
    world = World()
    world.hear(broken())
    world.kinds()
    world.restart()
    world.hear(broken())
    assert world.kinds() == ["ReadObject NODE", "Ack DAEMON"]


def test_a_node_that_another_has_written_meanwhile_is_read_again_and_nothing_of_it_is_lost() -> None:
    world = World()
    world.hear(well())
    world.kinds()
    world.another_writes_the_node(taints=(THEIRS,))
    world.hear(broken())
    world.pass_time(1)
    assert world.kinds() == [
        "SetTaints NODE",
        "ReadObject NODE",
        "SetTaints NODE",
        "SetCondition CONDITION",
        "Ack DAEMON",
    ]
    assert [each["key"] for each in world.taints] == ["maintenance", TAINT]


def test_a_taint_that_another_takes_away_comes_back() -> None:
    world = World()
    world.hear(broken())
    world.another_writes_the_node(taints=())
    world.watch_reports()
    world.pass_time(1)
    assert world.our_taints == ["80E18005"]


def test_whoever_takes_the_taint_away_each_time_makes_no_storm_of_requests() -> None:
    world = World()
    world.hear(broken())
    world.kinds()
    for _ in range(50):
        world.another_writes_the_node(taints=())
        world.watch_reports()
    assert world.kinds() == []
    world.pass_time(1)
    assert world.kinds() == ["SetTaints NODE"]


def test_a_taint_that_never_stays_is_tried_ever_more_slowly_and_stops_nothing_else() -> None:
    world = World(strips=True)
    world.hear(broken())
    assert world.kinds() == ["ReadObject NODE", "SetTaints NODE", "SetCondition CONDITION"]
    world.pass_time(600)
    assert 10 <= len([kind for kind in world.kinds() if kind == "SetTaints NODE"]) <= 30
    assert world.acked == 0
    world.strips = False
    world.pass_time(100)
    assert (world.our_taints, said(world)[0], world.acked) == (["80E18005"], "False", 813)


def test_where_the_taint_is_refused_the_condition_is_written_all_the_same() -> None:
    world = World(fails=lambda order: 403 if isinstance(order, SetTaints) else 0)
    world.hear(broken())
    assert (said(world)[0], world.our_taints, world.acked) == ("False", [], 0)


def test_a_taint_of_ours_goes_where_none_is_wanted_any_more() -> None:
    world = World(taints=(THEIRS,))
    world.hear(broken())
    world.settings = replace(SETTINGS, scope="off")
    world.restart()
    world.hear(broken())
    world.pass_time(60)
    assert world.taints == (THEIRS,)


def test_what_the_watch_tells_of_before_our_own_write_changes_nothing() -> None:
    world = World()
    world.hear(well())
    before = world.node
    world.hear(broken())
    world.kinds()
    world.given(ObjectSeen(target=Target.NODE, found=before))
    assert world.kinds() == []


def test_a_node_that_is_made_anew_gets_all_again() -> None:
    world = World()
    world.hear(broken())
    world.given(ObjectSeen(target=Target.NODE, found=None))
    world.kinds()
    world.another_writes_the_node(taints=(), condition=None)
    world.watch_reports()
    assert world.kinds() == ["SetTaints NODE", "SetCondition CONDITION"]


def test_nothing_is_acknowledged_before_it_is_in_the_cluster() -> None:
    world = World(fails=lambda order: 503 if isinstance(order, SetTaints) else 0)
    world.hear(broken())
    world.pass_time(30)
    assert (world.acked, world.our_taints) == (0, [])
    world.fails = lambda _: 0
    world.pass_time(30)
    assert (world.acked, world.our_taints) == (813, ["80E18005"])


def test_a_daemon_that_is_silent_for_a_minute_makes_the_condition_unknown_and_leaves_the_taint() -> None:
    world = World()
    world.hear(broken())
    world.be_silent()
    world.pass_time(59)
    assert said(world)[0] == "False"
    world.pass_time(1)
    assert said(world)[:2] == ("Unknown", "NodeagentDoesNotAnswer")
    world.pass_time(3600)
    assert world.our_taints == ["80E18005"]
    world.hear(broken(seq=815))
    world.pass_time(1)
    assert said(world)[:2] == ("False", "AcceleratorsIsolated")


def test_the_condition_is_the_one_of_its_type() -> None:
    world = World()
    world.hear(well())
    assert world.condition is not None
    assert world.condition["type"] == CONDITION
