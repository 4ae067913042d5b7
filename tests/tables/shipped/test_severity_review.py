"""Where each level comes from, and every row that is stricter or milder than its vendor recommends.

What the vendors recommend is data under ``tests/fixtures``; what that means in levels is said here once.
"""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from nodeagent.api.faults.explain import explanation
from nodeagent.core.catalog.catalog import Catalog, Row
from nodeagent.core.catalog.levels import PRECEDENCE
from nodeagent.core.catalog.lookup import Lookup
from nodeagent.core.model import Kind, Level
from nodeagent.messages.pb import types_pb2 as pb
from nodeagent.tables.levels import SOURCE_NAMES, LevelSource
from tests.shipped import shipped_catalog
from tests.tables.shipped.mindcluster import KINDS

TESTS = Path(__file__).parents[2]

RESTARTS_APPLICATION = "the application restarts"
"""And that is all: the device stays in service."""

LEVEL_OF_BUCKET = {
    "IGNORE": "NotHandleFault",
    "CONTACT_SUPPORT": "SubHealthFault",
    "UPDATE_SWFW": "SubHealthFault",
    "RESTART_APP": RESTARTS_APPLICATION,
    "RESET_GPU": "RestartNPU",
    "RESTART_VM": "SeparateNPU",
    "RESTART_BM": "SeparateNPU",
    "CHECK_MECHANICALS": "SeparateNPU",
}
"""NVIDIA's resolution buckets of Xids. The others are workflows, which say no single thing."""
LEVEL_OF_ACTION = {
    "IGNORE": "NotHandleFault",
    "CHECK_FM_CONFIG": "SubHealthFault",
    "CHECK_LINK_MECHANICAL_CONNECTIONS": "SubHealthFault",
    "CHECK_THERMALS": "SubHealthFault",
    "INVESTIGATE_LINK_SI": "SubHealthFault",
    "REPORT_ISSUE": "SubHealthFault",
    "RESET_FABRIC": "PreSeparateFault",
    "RESET_GPU": "PreSeparateFault",
    "RUN_FIELDDIAG": "PreSeparateFault",
    "UNEXPECTED_ERR_REPORT_ISSUE": "PreSeparateFault",
    "WORKFLOW_NVLINK_POTENTIALY_FATAL_ERR": "PreSeparateFault",
}
"""NVIDIA's actions for SXids: a person checks while work goes on, or work ends before something is done."""
LEVEL_OF_DCGM = {
    "warn": "SubHealthFault",
    "fail": "RestartNPU",
    "isolate": "PreSeparateNPU",
    "isolate_node": "PreSeparateFault",
}
"""What DCGM makes of a state of a GPU: it warns and work goes on, it has failed, or gets no more jobs until
it was examined, as its node does.
"""

STRICTER, MILDER = "stricter", "milder"

REGISTERS_OF_74 = {f"XID_74.{meaning}" for meaning in ("parity", "hardware", "signal", "secondary")}
"""For these the catalogue's workflow ends in a reset and support."""

XIDS_THAT_DIFFER = {
    "XID_38": STRICTER,
    "XID_43": STRICTER,
    "XID_44": STRICTER,
    "XID_63": STRICTER,
    "XID_92": STRICTER,
    "XID_109": MILDER,
    "XID_121": STRICTER,
    "XID_137": STRICTER,
    "XID_156": MILDER,
    "XID_160": STRICTER,
}
SXIDS_THAT_DIFFER = {"SXID_10006": STRICTER, "SXID_28003": STRICTER, "SXID_28005": STRICTER}
ASCEND_CODES_THAT_DIFFER = {"80C98002": MILDER, "80CB8002": MILDER}
PORTS_THAT_DIFFER = {"PORT_LINK_LOST", "PORT_RECEIVER_NOT_READY"}
"""From NVSentinel's limits for counters of network cards: each of these is milder."""

STATES_THAT_DIFFER = {
    "NV_ECC_UNCORRECTED": MILDER,
    "NV_IMEX_DOMAIN_DEGRADED": MILDER,
    "NV_IMEX_DOMAIN_DOWN": MILDER,
    "NV_IMEX_NOT_READY": MILDER,
    "NV_NVLINK_PACKET_ERRORS": MILDER,
    "NV_NVLINK_RECOVERY": MILDER,
    "NV_NVLINK_REPLAY": MILDER,
    "NV_NVLINK_SYMBOL_ERRORS": MILDER,
    "NV_PCIE_REPLAY_RATE": MILDER,
    "NV_PERSISTENCE_OFF": MILDER,
}
JUDGED_BY_NO_VENDOR = {
    "ECC_CORRECTED_STORM",
    "NV_NVLINK_FLAPPING",
    "NV_POWER_BRAKE",
    "NV_SPARE_ROWS_NONE",
}
"""What no vendor has a level for, and stops work or is told apart all the same: the row says why."""
WORKFLOWS = {45, 48, 74, *range(144, 151), 154, 159}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return shipped_catalog()


def of_nvidia(name: str) -> dict[str, Any]:
    return tomllib.loads((TESTS / "fixtures/nvidia" / name).read_text())


def taken(catalog: Catalog, row: Row) -> str:
    """The level, or that the application restarts where ``explain`` says so of it."""
    first = explanation(Lookup(catalog), row.code).modes[0].phases[0]
    restarts = (first.verdict, first.handling) == (pb.VERDICT_ALLOW, pb.HANDLING_RESTART_JOB)
    return RESTARTS_APPLICATION if restarts else row.level


def rank(word: str) -> float:
    """A restart of the application lies below every level that keeps work off the device."""
    return PRECEDENCE[Level.SUB_HEALTH] + 0.5 if word == RESTARTS_APPLICATION else PRECEDENCE[Level(word)]


def difference(catalog: Catalog, row: Row, recommended: str) -> str:
    own = taken(catalog, row)
    return "" if own == recommended else STRICTER if rank(own) > rank(recommended) else MILDER


def differing(catalog: Catalog, recommended: dict[str, str]) -> dict[str, str]:
    found = {code: difference(catalog, catalog.rows[code], word) for code, word in recommended.items()}
    return {code: word for code, word in found.items() if word}


def without_a_reason(catalog: Catalog, codes: set[str]) -> list[str]:
    return sorted(code for code in codes if not catalog.rows[code].level_reason)


def test_every_shipped_row_says_whose_word_its_level_is(catalog: Catalog) -> None:
    assert [row.code for row in catalog.rows.values() if row.level_source not in set(LevelSource)] == []


def test_every_source_of_a_level_is_told_in_words() -> None:
    assert set(SOURCE_NAMES) == set(LevelSource)


def test_these_xids_differ_from_nvidias_catalogue_and_say_why(catalog: Catalog) -> None:
    buckets = of_nvidia("xid_catalogue.toml")["immediate_action"]
    recommended = {
        f"XID_{number}": LEVEL_OF_BUCKET[bucket]
        for bucket, numbers in buckets.items()
        if bucket in LEVEL_OF_BUCKET
        for number in numbers
    }
    assert differing(catalog, recommended) == XIDS_THAT_DIFFER
    assert without_a_reason(catalog, set(XIDS_THAT_DIFFER)) == []
    same = set(recommended) - set(XIDS_THAT_DIFFER)
    assert {catalog.rows[code].level_source for code in same} == {LevelSource.XID_CATALOGUE}


def test_xids_for_which_the_catalogue_has_no_single_word_say_why_they_have_their_level(
    catalog: Catalog,
) -> None:
    given = of_nvidia("xid_catalogue.toml")
    workflows = {
        number
        for bucket, numbers in given["immediate_action"].items()
        if bucket not in LEVEL_OF_BUCKET
        for number in numbers
    }
    assert workflows == WORKFLOWS
    later = {174, 175, 176}
    assert (
        without_a_reason(catalog, {f"XID_{number}" for number in {*workflows, *given["none"], *later}}) == []
    )


def keeping_work_away(catalog: Catalog, xids: list[int]) -> set[int]:
    """Those of the Xids whose rows take a GPU out of service or keep new work off it."""
    return {
        xid for xid in xids if rank(taken(catalog, catalog.rows[f"XID_{xid}"])) > rank(RESTARTS_APPLICATION)
    }


def test_what_fails_a_gpu_for_dcgm_takes_it_out_and_of_what_it_warns_only_these_do(catalog: Catalog) -> None:
    """The catalogue checks the power cables at 54 and resets at 62; the row of 63 has its reason."""
    watched = of_nvidia("dcgm_xids.toml")
    assert keeping_work_away(catalog, watched["fail"]) == set(watched["fail"])
    assert keeping_work_away(catalog, watched["warn"]) == {54, 62, 63}


def test_these_states_of_a_gpu_differ_from_what_dcgm_makes_of_them_and_say_why(catalog: Catalog) -> None:
    watched = of_nvidia("dcgm_states.toml")
    recommended = {code: LEVEL_OF_DCGM[result] for result, codes in watched.items() for code in codes}
    assert differing(catalog, recommended) == STATES_THAT_DIFFER
    assert without_a_reason(catalog, set(STATES_THAT_DIFFER)) == []
    same = set(recommended) - set(STATES_THAT_DIFFER)
    assert {catalog.rows[code].level_source for code in same} == {LevelSource.DCGM}


def test_what_nvidias_device_plugin_ignores_leaves_the_gpu_in_service(catalog: Catalog) -> None:
    assert keeping_work_away(catalog, of_nvidia("device_plugin_xids.toml")["ignored"]) == set()


def test_these_sxids_differ_from_nvidias_table_and_say_why(catalog: Catalog) -> None:
    recommended = {
        f"SXID_{number}": LEVEL_OF_ACTION[action]
        for action, numbers in of_nvidia("sxid_table.toml")["action"].items()
        for number in numbers
    }
    assert len(recommended) == 398
    assert differing(catalog, recommended) == SXIDS_THAT_DIFFER
    assert without_a_reason(catalog, set(SXIDS_THAT_DIFFER)) == []


def test_these_ascend_codes_differ_from_mindclusters_tables_and_say_why(catalog: Catalog) -> None:
    recommended = {
        row.code: level
        for _, levels in KINDS.values()
        for code, level in levels.items()
        if (row := catalog.row(code)) is not None
    }
    rows = {row.code: row for row in catalog.rows.values()}
    found = {code: difference(catalog, rows[code], level) for code, level in recommended.items()}
    assert {code: word for code, word in found.items() if word} == ASCEND_CODES_THAT_DIFFER
    assert [code for code in ASCEND_CODES_THAT_DIFFER if not rows[code].level_reason] == []
    same = set(recommended) - set(ASCEND_CODES_THAT_DIFFER)
    assert {rows[code].level_source for code in same} == {LevelSource.MINDCLUSTER}


def is_reviewed(row: Row) -> bool:
    """Rows of the host give reasons for more than a difference from a vendor."""
    return row.kind in (Kind.CHIP, Kind.LINK)


def test_only_a_level_that_is_not_the_vendors_or_has_none_gives_a_reason(catalog: Catalog) -> None:
    given = of_nvidia("xid_catalogue.toml")
    explained = {f"XID_{number}" for number in {*WORKFLOWS, *given["none"], 174, 175, 176}}
    explained |= {*XIDS_THAT_DIFFER, *SXIDS_THAT_DIFFER, *ASCEND_CODES_THAT_DIFFER, "XID_*"}
    explained |= {*REGISTERS_OF_74, *(code for code in STATES_THAT_DIFFER if is_reviewed(catalog.rows[code]))}
    explained |= PORTS_THAT_DIFFER | JUDGED_BY_NO_VENDOR
    asked_for = {code for code in catalog.rows if code.startswith("XID_154.")}
    reasons = {row.code for row in catalog.rows.values() if row.level_reason and is_reviewed(row)}
    assert reasons - asked_for == explained
