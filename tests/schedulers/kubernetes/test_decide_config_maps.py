"""When MindCluster's ConfigMaps are written, and when they are left to MindCluster's own writers."""

from dataclasses import replace

from nodeagent.client import Verdict
from nodeagent.schedulers.kubernetes.facts import facts_of
from nodeagent.schedulers.kubernetes.state import Target
from tests.schedulers.kubernetes.snapshots import broken, node, snapshot, well
from tests.schedulers.kubernetes.world import SETTINGS, World

WITH_INFO = replace(SETTINGS, device_info=True)
WITH_NODE_INFO = replace(SETTINGS, node_info=True)


def test_the_device_info_is_written_at_a_change_and_every_five_minutes() -> None:
    world = World(settings=WITH_INFO)
    world.hear(well())
    assert world.kinds() == [
        "ReadObject NODE",
        "SetCondition CONDITION",
        "ReadObject DEVICE_INFO",
        "CreateConfigMap DEVICE_INFO",
        "Ack DAEMON",
    ]
    world.pass_time(10)
    world.hear(broken())
    assert "ReplaceConfigMap DEVICE_INFO" in world.kinds()
    world.pass_time(299)
    assert "ReplaceConfigMap DEVICE_INFO" not in world.kinds()
    world.pass_time(1)
    assert "ReplaceConfigMap DEVICE_INFO" in world.kinds()


def test_the_device_info_is_written_once_a_second_at_most_and_then_as_it_is_now() -> None:
    world = World(settings=WITH_INFO)
    world.hear(well())
    world.hear(broken())
    world.hear(well(820))
    world.hear(broken(seq=821))
    assert [kind for kind in world.kinds() if "INFO" in kind] == [
        "ReadObject DEVICE_INFO",
        "CreateConfigMap DEVICE_INFO",
    ]
    assert world.acked == 820
    world.pass_time(1)
    assert world.kinds() == ["SetCondition CONDITION", "ReplaceConfigMap DEVICE_INFO", "Ack DAEMON"]
    assert "Ascend910-3" in world.infos[Target.DEVICE_INFO].data["DeviceInfoCfg"]


def test_a_device_info_that_mindclusters_plug_in_writes_is_never_touched() -> None:
    world = World(settings=WITH_INFO)
    world.another_writes(Target.DEVICE_INFO, {"DeviceInfoCfg": "{}"})
    world.hear(broken())
    world.pass_time(900)
    written = [
        kind
        for kind in world.kinds()
        if kind in ("CreateConfigMap DEVICE_INFO", "ReplaceConfigMap DEVICE_INFO")
    ]
    assert (written, world.acked) == ([], 813)


def test_a_plug_in_that_begins_to_write_later_is_noticed_at_the_next_write() -> None:
    world = World(settings=WITH_INFO)
    world.hear(well())
    world.pass_time(10)
    world.another_writes(Target.DEVICE_INFO, {"DeviceInfoCfg": "{}"})
    world.kinds()
    world.hear(broken())
    world.pass_time(1)
    assert [kind for kind in world.kinds() if "DEVICE_INFO" in kind] == [
        "ReplaceConfigMap DEVICE_INFO",
        "ReadObject DEVICE_INFO",
    ]
    assert world.infos[Target.DEVICE_INFO].data == {"DeviceInfoCfg": "{}"}


def test_a_device_info_whose_writer_was_removed_is_taken_over_once_a_person_deletes_it() -> None:
    world = World(settings=WITH_INFO)
    world.another_writes(Target.DEVICE_INFO, {"DeviceInfoCfg": "{}"})
    world.hear(well())
    del world.infos[Target.DEVICE_INFO]
    world.pass_time(300)
    assert world.infos[Target.DEVICE_INFO].is_ours


def test_what_a_silent_daemon_said_last_is_not_acknowledged_unless_it_is_in_the_cluster() -> None:
    world = World(settings=WITH_INFO, fails=lambda order: 503 if order.target is Target.DEVICE_INFO else 0)
    world.hear(broken())
    world.be_silent()
    world.pass_time(30)
    assert world.acked == 0


def test_the_node_info_comes_with_a_fault_and_goes_with_it() -> None:
    world = World(settings=WITH_NODE_INFO)
    world.hear(well())
    assert world.infos == {}
    world.hear(facts_of(snapshot((node(Verdict.ISOLATE, "0300000D"),), seq=813)))
    assert world.infos[Target.NODE_INFO].is_ours
    world.pass_time(5)
    world.hear(well(820))
    assert (world.infos, world.acked) == ({}, 820)


def test_where_noded_is_installed_no_node_info_is_written() -> None:
    world = World(settings=WITH_NODE_INFO, noded=True)
    world.hear(facts_of(snapshot((node(Verdict.ISOLATE, "0300000D"),), seq=813)))
    assert (world.infos, world.acked) == ({}, 813)
    world.noded = False
    world.pass_time(300)
    assert world.infos[Target.NODE_INFO].is_ours
