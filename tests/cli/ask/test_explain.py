"""explain: what the tables say of a code, what comes of it in both modes, and what closes it."""

from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Nodeagent
from tests.harness.node import Node
from tests.tables.shipped.mindcluster import KINDS

LEVELS = {code: level for _, levels in KINDS.values() for code, level in levels.items()}


def test_every_code_of_mindclusters_lists_is_explained_with_its_level(nodeagent: Nodeagent) -> None:
    ran = nodeagent("explain", "-o", "json", *LEVELS)
    assert ran.status == 0
    assert len(LEVELS) == 802 + 30 + 59 + 30
    assert {explanation["code"]: explanation["level"] for explanation in ran.json} == LEVELS


def test_a_level_with_a_tolerance_has_two_phases_in_each_mode(nodeagent: Nodeagent) -> None:
    (explanation,) = nodeagent("explain", "-o", "json", "80CB8009").json
    tolerance = {"duration": "60s", "verdict": "NO_NEW_JOBS", "handling": "RERUN_REQUEST"}
    assert explanation["modes"] == {
        "rescheduling": [tolerance, {"duration": None, "verdict": "ISOLATE", "handling": "RESCHEDULE"}],
        "graceful": [tolerance, {"duration": None, "verdict": "ISOLATE", "handling": "STOP_RESET_RESTART"}],
    }


def test_what_training_does_in_place_of_a_request_is_named(nodeagent: Nodeagent) -> None:
    line = (
        "training  in place of RERUN_REQUEST in mode graceful RESTART_JOB, in mode rescheduling what follows"
        " it, at once"
    )
    assert line in nodeagent("explain", "80CB8009").out
    assert "training" not in nodeagent("explain", "80E01801").out


def test_a_restart_and_a_reset_follow_each_other_in_graceful_mode(nodeagent: Nodeagent) -> None:
    (explanation,) = nodeagent("explain", "-o", "json", "80E01801").json
    assert [(phase["duration"], phase["handling"]) for phase in explanation["modes"]["graceful"]] == [
        ("60s", "RESTART_JOB"),
        (None, "STOP_RESET_RESTART"),
    ]


def test_a_fault_of_the_application_never_isolates(nodeagent: Nodeagent) -> None:
    (explanation,) = nodeagent("explain", "-o", "json", "80C98002").json
    stance = {"duration": None, "verdict": "ALLOW", "handling": "RESTART_JOB"}
    assert explanation["modes"] == {"rescheduling": [stance], "graceful": [stance]}


def test_a_programs_fault_of_the_node_asks_nothing_also_not_the_third_time(nodeagent: Nodeagent) -> None:
    (explanation,) = nodeagent("explain", "-o", "json", "OOM_CGROUP").json
    stance = {"duration": None, "verdict": "ALLOW", "handling": "NONE"}
    assert explanation["modes"] == {"rescheduling": [stance], "graceful": [stance]}
    assert "from the third" in nodeagent("explain", "XID_31").out
    assert "from the third" not in nodeagent("explain", "OOM_CGROUP").out


def test_rules_are_reported_in_words_with_their_place(nodeagent: Nodeagent) -> None:
    (explanation,) = nodeagent("explain", "-o", "json", "81078603").json
    assert explanation["rules"] == [
        "ascend-link-down-repeat",
        "ascend-link-down",
        "ascend-link-down-retried",
        "ascend-link-down-retry-failed",
    ]
    assert [(rule["kind"], rule["text"]) for rule in explanation["rule_details"]] == [
        ("frequency", "5 times in 1d: ManuallySeparateNPU, released once it stayed away for 2d"),
        ("duration", "there for longer than 20s: PreSeparateNPU; over once gone for longer than 1m"),
        ("relation", "81078603 within 5m of 8C1F8609 on the same job: level SubHealthFault"),
        (
            "relation",
            "81078603 within 5m of 8C1F860B, 8C1F8608, 4C1F8608 on the same job: level SeparateNPU",
        ),
    ]
    assert all(
        rule["file"].startswith(f"{ROOT}/fault_codes/ascend.toml:") for rule in explanation["rule_details"]
    )


@pytest.mark.parametrize(
    ("code", "rules"), [("80E01805", []), ("80E24E00", ["repeat"]), ("80E18008", ["ascend-hardware-repeat"])]
)
def test_the_rule_for_every_code_is_reported_where_it_counts(
    nodeagent: Nodeagent, code: str, rules: list[str]
) -> None:
    (explanation,) = nodeagent("explain", "-o", "json", code).json
    assert explanation["rules"] == rules


def test_an_unknown_code_is_reported_by_its_decoded_name(nodeagent: Nodeagent) -> None:
    ran = nodeagent("explain", "-o", "json", "80e18009")
    (explanation,) = ran.json
    assert (
        ran.status,
        explanation["known"],
        explanation["code"],
        explanation["name"],
        explanation["level"],
    ) == (
        1,
        False,
        "80E18009",
        "HBM RAS State: bus error, probably caused by software",
        None,
    )


NUMBERED = [f"[0x00f103b0,{each},na,na]" for each in (155649, 155904, 155907)]


@pytest.mark.parametrize("number", ["00f103b0", "0x00f103b0", "0X00F103B0", "f103b0"])
def test_a_number_that_codes_begin_with_means_all_of_them(nodeagent: Nodeagent, number: str) -> None:
    ran = nodeagent("explain", "-o", "json", number)
    assert (ran.status, [each["code"] for each in ran.json]) == (0, NUMBERED)


def test_the_daemon_lists_the_codes_of_a_number_as_the_command_does_alone(
    nodeagent: Nodeagent, tmp_path: Path
) -> None:
    with Node.within(tmp_path).daemon():
        ran = nodeagent("explain", "-o", "json", "XID_79", "0x00f103b0", "0x80e01801")
    assert (ran.status, ran.err) == (0, "")
    assert [each["code"] for each in ran.json] == ["XID_79", *NUMBERED, "80E01801"]


@pytest.mark.parametrize(
    ("unknown", "near"),
    [
        ("xid 79", "XID_79"),
        ("NVME_DWON", "NVME_DOWN"),
        ("nvlink_inactive", "NV_NVLINK_INACTIVE"),
        ("[0x00f103b0,155906,na,na]", "[0x00f103b0,155907,na,na], [0x00f103b0,155904,na,na]"),
        ("0x00f103b1", "[0x00f103b"),
        ("F1O3B0", "[0x00f103b0,155649,na,na]"),
    ],
)
def test_an_unknown_code_names_the_nearest(nodeagent: Nodeagent, unknown: str, near: str) -> None:
    ran = nodeagent("explain", unknown)
    first, second = ran.out.splitlines()
    assert (ran.status, first.partition(": ")[2]) == (1, "in no table")
    assert second.startswith(f"  near      {near}")


def test_zeros_before_a_number_change_no_code(nodeagent: Nodeagent) -> None:
    """Of a family too, whose other numbers have no row."""
    ran = nodeagent("explain", "-o", "json", "XID_048", "xid_00013", "XID_0999", "XID_0")
    assert [(each["code"], each.get("family", "")) for each in ran.json] == [
        ("XID_48", ""),
        ("XID_13", ""),
        ("XID_999", "XID_*"),
        ("XID_0", "XID_*"),
    ]


def test_a_code_that_is_like_no_other_is_unknown(nodeagent: Nodeagent) -> None:
    assert nodeagent("explain", "nope").out == "nope: in no table\n"


def test_a_person_reads_what_happens_and_what_closes_it(nodeagent: Nodeagent) -> None:
    lines = nodeagent("explain", "[0x00f1fef5,155914,NPU,na]").out.splitlines()
    assert lines[:10] == [
        "[0x00f1fef5,155914,npu,na]: Invalid packet on a UnifiedBus port towards an NPU",
        "  level     RestartRequestFault",
        "  level by  MindCluster's fault tables",
        "  kind      unifiedbus, ascend, affects node",
        "  means     A UnifiedBus switch port got packets that make no sense. An NPU is at its other end.",
        ("  do        Run the request, or the job, again on another node. Check the link if it comes back."),
        "  mode      rescheduling (in force): ISOLATE, RESCHEDULE",
        "  mode      graceful: NO_NEW_JOBS, RERUN_REQUEST",
        "  training  in place of RERUN_REQUEST in mode graceful RESTART_JOB, at once",
        "  closed by the driver reports its end, or a reboot after which it is gone",
    ]


def test_a_level_that_is_not_the_vendors_is_reported_with_its_source_and_its_reason(
    nodeagent: Nodeagent,
) -> None:
    reason = (
        "The table asks to check the cooling. The module takes its links down next, so no new work is placed"
        " on them meanwhile."
    )
    (explanation,) = nodeagent("explain", "-o", "json", "SXID_28003").json
    lines = nodeagent("explain", "SXID_28003").out.splitlines()
    assert (explanation["level_source"], explanation["level_reason"]) == ("sxid_table", reason)
    assert lines[2:4] == ["  level by  NVIDIA's table of SXids", f"  why       {reason}"]


def test_more_codes_than_the_daemon_answers_at_once_are_asked_in_parts(
    nodeagent: Nodeagent, tmp_path: Path
) -> None:
    with Node.within(tmp_path).daemon():
        ran = nodeagent("explain", "-o", "json", *LEVELS)
    assert (ran.status, ran.err) == (0, "")
    assert {explanation["code"]: explanation["level"] for explanation in ran.json} == LEVELS
