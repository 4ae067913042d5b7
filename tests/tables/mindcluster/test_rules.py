"""The rules of MindCluster's ``faultCustomization.json``: taken over the shipped ones, or skipped whole."""

import json
from pathlib import Path
from typing import Any

import pytest

from nodeagent.core.catalog.catalog import Catalog, DurationRule, FrequencyRule
from nodeagent.core.catalog.lookup import Lookup
from nodeagent.core.catalog.settings import Settings
from nodeagent.core.model import Level
from nodeagent.tables.load import Loaded, TablesError, load_catalog

SHIPPED = Path(__file__).parents[3] / "fault_codes"
SECOND_NS = 1_000_000_000
FREQUENCY = {
    "EventId": ["80e18005"],
    "TimeWindow": 60,
    "Times": 1,
    "FaultHandling": "SeparateNPU",
    "ReleaseTimeWindow": 60,
}
DURATION = {
    "EventId": ["81B18603"],
    "FaultTimeout": 5,
    "RecoverTimeout": 60,
    "FaultHandling": "PreSeparateNPU",
}


def load(folder: Path, customization: Any) -> Loaded:
    (folder / "faultCustomization.json").write_text(json.dumps(customization, indent=1))
    return load_catalog([SHIPPED, folder], Settings())


def frequency(catalog: Catalog, code: str) -> FrequencyRule:
    found = Lookup(catalog).facts(code).frequency
    assert found is not None
    return found


def skipped(folder: Path, customization: Any) -> list[str]:
    """What is said of rules that were skipped, without the folder and the line."""
    loaded = load(folder, customization)
    return [line.split(": ", 1)[1] for line in loaded.warnings if line.endswith("skipped")]


def test_a_sites_frequency_rule_counts_instead_of_the_shipped_one(tmp_path: Path) -> None:
    rule = frequency(load(tmp_path, {"FaultFrequency": [FREQUENCY]}).catalog, "80E18005")
    assert rule == FrequencyRule(
        id="mindcluster-frequency-1",
        codes=("80E18005",),
        times=1,
        time_window_ns=60 * SECOND_NS,
        level=Level.SEPARATE_NPU,
        release_ns=60 * SECOND_NS,
        file=f"{tmp_path}/faultCustomization.json:3",
    )


def test_a_sites_duration_rule_is_taken(tmp_path: Path) -> None:
    rule = Lookup(load(tmp_path, {"FaultDuration": [DURATION]}).catalog).facts("81B18603").duration
    assert rule == DurationRule(
        id="mindcluster-duration-1",
        codes=("81B18603",),
        fault_timeout_ns=5 * SECOND_NS,
        recover_timeout_ns=60 * SECOND_NS,
        level=Level.PRE_SEPARATE_NPU,
        file=f"{tmp_path}/faultCustomization.json:3",
    )


def test_rules_that_the_file_omits_stay_and_are_counted_once(tmp_path: Path) -> None:
    loaded = load(tmp_path, {"FaultFrequency": [FREQUENCY]})
    assert frequency(loaded.catalog, "81078603").id == "ascend-link-down-repeat"
    file = f"{tmp_path}/faultCustomization.json"
    assert loaded.warnings == (
        f"{file}: codes that keep a frequency rule which is not in it: 42",
        f"{file}: codes that keep a duration rule which is not in it: 1",
    )


@pytest.mark.parametrize("release", [None, 0, 4_294_967_296])
def test_without_a_release_window_only_a_person_releases(tmp_path: Path, release: int | None) -> None:
    rule = {**FREQUENCY, "FaultHandling": "ManuallySeparateNPU", "ReleaseTimeWindow": release}
    if release is None:
        del rule["ReleaseTimeWindow"]
    assert frequency(load(tmp_path, {"FaultFrequency": [rule]}).catalog, "80E18005").release_ns is None


def test_of_two_rules_for_a_code_the_first_counts(tmp_path: Path) -> None:
    second = {**FREQUENCY, "EventId": ["80E18005", "80C98000"], "Times": 7}
    loaded = load(tmp_path, {"FaultFrequency": [FREQUENCY, second]})
    assert [frequency(loaded.catalog, code).times for code in ("80E18005", "80C98000")] == [1, 7]
    assert [line for line in loaded.warnings if "the first counts" in line] == [
        (
            f"{tmp_path}/faultCustomization.json:14: FaultFrequency[1].EventId.80E18005:"
            " rule 0 names it already, and the first counts"
        )
    ]


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("TimeWindow", 59, "59: must be a whole number from 60 to 864000"),
        ("TimeWindow", 864_001, "864001: must be a whole number from 60 to 864000"),
        ("TimeWindow", "60", '"60": must be a whole number from 60 to 864000'),
        ("TimeWindow", 60.5, "60.5: must be a whole number from 60 to 864000"),
        ("Times", 0, "0: must be a whole number from 1 to 100"),
        ("Times", 101, "101: must be a whole number from 1 to 100"),
        ("Times", True, "true: must be a whole number from 1 to 100"),
        ("ReleaseTimeWindow", 59, "59: must be 0 or from 60 to 4294967296 seconds"),
        ("ReleaseTimeWindow", 4_294_967_297, "4294967297: must be a whole number from 0 to 4294967296"),
        ("ReleaseTimeWindow", 0, "missing; SeparateNPU must be released some time"),
        ("EventId", [], "names no code"),
    ],
)
def test_a_frequency_rule_out_of_range_is_skipped_whole(
    tmp_path: Path, key: str, value: object, reason: str
) -> None:
    said = skipped(tmp_path, {"FaultFrequency": [{**FREQUENCY, key: value}, {**FREQUENCY, "Times": 9}]})
    assert said == [f"FaultFrequency[0].{key}: {reason}; the whole rule is skipped"]
    assert frequency(load_catalog([SHIPPED, tmp_path], Settings()).catalog, "80E18005").times == 9


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("FaultTimeout", 601, "601: must be a whole number from 0 to 600"),
        ("FaultTimeout", -1, "-1: must be a whole number from 0 to 600"),
        ("RecoverTimeout", 86_401, "86401: must be a whole number from 0 to 86400"),
        (
            "FaultHandling",
            "ManuallySeparateNPU",
            (
                '"ManuallySeparateNPU": must be one of NotHandleFault, SubHealthFault, RestartRequest,'
                " RestartBusiness, FreeRestartNPU, RestartNPU, PreSeparateNPU, SeparateNPU"
            ),
        ),
    ],
)
def test_a_duration_rule_out_of_range_is_skipped_whole(
    tmp_path: Path, key: str, value: object, reason: str
) -> None:
    said = skipped(tmp_path, {"FaultDuration": [{**DURATION, key: value}]})
    assert said == [f"FaultDuration[0].{key}: {reason}; the whole rule is skipped"]


def test_a_rule_that_is_no_object_is_skipped(tmp_path: Path) -> None:
    assert skipped(tmp_path, {"FaultFrequency": [7, FREQUENCY]}) == [
        "FaultFrequency[0]: 7 is given where an object is needed; the whole rule is skipped"
    ]


def test_a_code_of_which_nothing_is_known_is_left_out_of_the_rule(tmp_path: Path) -> None:
    rule = {**FREQUENCY, "EventId": ["A2999999", "010001001", "80E18009", "80E18005"]}
    loaded = load(tmp_path, {"FaultFrequency": [rule]})
    assert frequency(loaded.catalog, "80E18005").codes == ("80E18009", "80E18005")
    place = f"{tmp_path}/faultCustomization.json:3: mindcluster-frequency-1 names"
    assert [line for line in loaded.warnings if " names " in line] == [
        f"{place} A2999999: no row has this code; skipped",
        f"{place} 010001001: the code is of kind public; skipped",
        f"{place} 80E18009 (HBM RAS State: bus error, probably caused by software), which has no row",
    ]


def test_grace_times_are_not_taken_from_the_file(tmp_path: Path) -> None:
    loaded = load(tmp_path, {"GraceTolerance": {"WaitDeviceResetTime": 60}})
    assert [line for line in loaded.warnings if "Grace" in line] == [
        (
            f"{tmp_path}/faultCustomization.json:2: GraceTolerance: grace times are not read from here:"
            " nodeagent's own configuration has them"
        )
    ]


def test_rules_that_are_no_list_refuse_the_tables(tmp_path: Path) -> None:
    with pytest.raises(TablesError) as refused:
        load(tmp_path, {"FaultFrequency": {}})
    assert str(refused.value) == (
        f"{tmp_path}/faultCustomization.json:2: FaultFrequency: {{ }} is given"
        " where a list of rules is needed"
    )
