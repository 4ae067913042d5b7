"""ConfigMaps byte for byte as MindCluster's own types write them: ``golden/README.md`` says where from."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodeagent.client import Condition, Kind, Level, ResetStage, Snapshot, Verdict
from nodeagent.schedulers.kubernetes import device_info, go_json, node_info
from nodeagent.schedulers.kubernetes.facts import facts_of
from tests.schedulers.kubernetes.snapshots import (
    AT_S,
    condition,
    device,
    isolation,
    node,
    npus,
    promotion,
    reset,
    snapshot,
    source,
)

GOLDEN = Path(__file__).parent / "golden"
ALONE = (-1, -1)

FAULTS_910B = snapshot(
    npus(
        8,
        device("npu1", job="slurm:7"),
        device("npu3", Verdict.ISOLATE, code="80E18005"),
        device("npu5", Verdict.NO_NEW_JOBS, code="81078603", network_unhealthy=True),
        device("npu6", Verdict.NO_NEW_JOBS, code="80DE1801", job="slurm:7"),
        device("npu7", Verdict.ISOLATE, code="020001002"),
    ),
    conditions=(
        condition("npu7", "020001002", Level.SEPARATE_NPU, 1_794_999_994_000),
        condition("npu7", "80C98000", Level.SUB_HEALTH, 1_794_999_993_000),
        condition("npu3", "80E18005", Level.RESTART_NPU, 1_794_999_990_123),
        condition("npu5", "81078603", Level.PRE_SEPARATE_NPU, 1_794_999_991_000),
        condition("npu6", "80DE1801", Level.PRE_SEPARATE_NPU, 1_794_999_992_000),
        condition("npu0", "80E18005", Level.SEPARATE_NPU, 1_794_999_992_000, affects_verdict=False),
    ),
    resets=(reset("npu3"), reset("npu0", ResetStage.WAITING)),
)
SEPARATED_910B = snapshot(
    npus(
        8,
        device("npu2", Verdict.ISOLATE, code="80E18005", level=Level.MANUALLY_SEPARATE_NPU),
        device("npu4", Verdict.ISOLATE),
    ),
    conditions=(condition("npu2", "80E18005", Level.RESTART_NPU, 1_794_999_979_000),),
    promotions=(promotion("npu2", "80E18005", 1_794_999_980_000),),
    holds=(isolation("npu4"),),
)
SWITCH_A3 = snapshot(
    (
        *npus(
            16,
            device("npu2", Verdict.ISOLATE, code="80E18005", series="A3"),
            device("npu10", Verdict.ISOLATE, code="80E18005", series="A3"),
            series="A3",
        ),
        device("ub0/31", kind=Kind.UNIFIEDBUS),
        device("ub2", kind=Kind.UNIFIEDBUS),
    ),
    conditions=(
        condition("npu2", "80E18005", Level.SEPARATE_NPU, 1_794_999_990_000),
        condition("npu10", "80E18005", Level.SEPARATE_NPU, 1_794_999_990_000),
        condition(
            "ub2",
            "[0x00f103b0,155904,na,na]",
            Level.SEPARATE_FAULT,
            1_794_999_971_000,
            source="unifiedbus",
            evidence={"severity": "2", "alarm_time": "1794999970000", "peer_device": "0", "peer_port": "0"},
        ),
        condition(
            "ub0/31",
            "[0x08520003,na,L2,na]",
            Level.SUB_HEALTH,
            1_794_999_975_000,
            source="unifiedbus",
            evidence={"severity": "1", "peer_device": "2", "peer_port": "7"},
        ),
    ),
    sources=(source("unifiedbus"),),
)


@pytest.mark.parametrize(
    ("name", "seen", "place"),
    [
        ("healthy-910b", snapshot(npus(8)), ALONE),
        ("faults-910b", FAULTS_910B, ALONE),
        ("separated-910b", SEPARATED_910B, ALONE),
        ("switch-a3", SWITCH_A3, (3, 1)),
        ("healthy-a3", snapshot(npus(16, series="A3"), sources=(source("unifiedbus"),)), (3, 1)),
        ("healthy-950", snapshot(npus(8, series="950")), ALONE),
    ],
)
def test_the_device_info_is_byte_for_byte_that_of_the_device_plugin(
    name: str, seen: Snapshot, place: tuple[int, int]
) -> None:
    made = device_info.data(facts_of(seen), super_pod_id=place[0], server_index=place[1], at_s=AT_S)
    assert made == golden(name)
    assert device_info.written_at_s(golden(name)) == AT_S


def of_the_bmc(code: str, level: Level, parts: str, order: int) -> Condition:
    return condition("node", code, level, order, source="bmc", evidence={"severity": "2", "parts": parts})


@pytest.mark.parametrize(
    ("name", "conditions"),
    [
        (
            "node-faults",
            (
                of_the_bmc("01000017", Level.PRE_SEPARATE_FAULT, "type 1 number 3", 1),
                of_the_bmc("03000009", Level.SEPARATE_FAULT, "type 3 number 1", 2),
                of_the_bmc("0300000D", Level.NOT_HANDLE, "type 3 number 1", 3),
            ),
        ),
        ("node-isolated", ()),
    ],
)
def test_the_node_info_is_byte_for_byte_that_of_noded(name: str, conditions: tuple[Condition, ...]) -> None:
    seen = snapshot((node(Verdict.ISOLATE),), conditions=conditions)
    assert node_info.data(facts_of(seen), at_s=AT_S) == golden(name)
    assert node_info.written_at_s(golden(name)) == AT_S


def test_a_node_without_faults_has_no_node_info() -> None:
    assert node_info.data(facts_of(snapshot((node(),))), at_s=AT_S) is None


def test_what_go_writes_in_its_own_way_is_written_so() -> None:
    odd: dict[str, object] = {
        'b<a>&"\\/': "é\u2028\u2029\n\t",
        "a": [],
        "A": None,
        "z": go_json.as_map({"9": 2, "10": 1}),
        "é": 1,
        "\U0001f600": 2,
        "\ufffd": 3,
    }
    assert go_json.text_of(go_json.as_map(odd)) == golden("go-json")["text"]
    assert go_json.check_code(go_json.as_map(odd)) == golden("go-json")["check_code"]


@pytest.mark.parametrize(
    "series", ["310", "", "A3"], ids=["of another form", "unknown", "different ones in one node"]
)
def test_chips_that_mindcluster_names_otherwise_get_no_device_info(series: str) -> None:
    seen = facts_of(snapshot(npus(2, device("npu1", series=series))))
    assert device_info.data(seen, super_pod_id=-1, server_index=-1, at_s=AT_S) is None


def test_a_fault_in_our_own_words_shows_in_the_level_and_not_among_the_vendors_codes() -> None:
    lost = device("npu1", Verdict.ISOLATE, code="device_lost", level=Level.SEPARATE_NPU)
    seen = snapshot(npus(2, lost), conditions=(condition("npu1", "device_lost", Level.SEPARATE_NPU, 1),))
    (entry,) = faults(seen)
    assert (entry["fault_code"], entry["fault_level"]) == ("", "SeparateNPU")


def test_a_chip_that_takes_no_new_work_is_unhealthy_only_once_its_job_has_left() -> None:
    held = device("npu1", Verdict.NO_NEW_JOBS, code="80DE1801", job="slurm:7")
    opened = (condition("npu1", "80DE1801", Level.PRE_SEPARATE_NPU, 1),)
    assert listed(snapshot(npus(2, held), conditions=opened), "-Unhealthy") == ""
    free = replace(held, claims=())
    assert listed(snapshot(npus(2, free), conditions=opened), "-Unhealthy") == "Ascend910-1"
    nobody_knows = replace(free, holders=None)
    assert listed(snapshot(npus(2, nobody_knows), conditions=opened), "-Unhealthy") == ""


def test_a_chip_that_nobody_reads_is_as_healthy_as_before() -> None:
    assert listed(snapshot(npus(2, device("npu1", Verdict.UNKNOWN))), "-Unhealthy") == ""


def listed(seen: Snapshot, of: str) -> Any:
    made = device_info.data(facts_of(seen), super_pod_id=-1, server_index=-1, at_s=AT_S)
    assert made is not None
    return json.loads(made["DeviceInfoCfg"])["DeviceInfo"]["DeviceList"][f"huawei.com/Ascend910{of}"]


def faults(seen: Snapshot) -> Any:
    return json.loads(listed(seen, "-Fault"))


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text())
