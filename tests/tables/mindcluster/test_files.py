"""MindCluster's own JSON files in a site's folder, with all that is contradictory in them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodeagent.core.catalog.catalog import Catalog, Row
from nodeagent.core.catalog.settings import Settings
from nodeagent.core.model import Affects, Kind, Level
from nodeagent.tables.load import Loaded, TablesError, load_catalog
from nodeagent.toml.source import TOO_DEEP, TOO_LARGE

TESTS = Path(__file__).parents[2]
SHIPPED = TESTS.parent / "fault_codes"
SECOND_NS = 1_000_000_000

Site = Callable[..., Loaded]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Loads the shipped tables and over them a site's folder with these files."""

    def load(**files: Any) -> Loaded:
        """Names without a suffix are JSON files; ``toml`` is a table."""
        for name, content in files.items():
            if name == "toml":
                (tmp_path / "site.toml").write_text(content)
            else:
                text = content if isinstance(content, str) else json.dumps(content, indent=1)
                (tmp_path / f"{name}.json").write_text(text)
        loaded = load_catalog([SHIPPED, tmp_path], Settings())
        return Loaded(loaded.catalog, tuple(line.replace(f"{tmp_path}/", "") for line in loaded.warnings))

    return load


def row(catalog: Catalog, code: str) -> Row:
    found = catalog.row(code)
    assert found is not None
    return found


def about(loaded: Loaded, word: str) -> list[str]:
    return [warning for warning in loaded.warnings if word in warning]


# --------------------------------------------------------------------------- as they are


def test_the_vendors_own_files_change_nothing_that_is_shipped(site: Site) -> None:
    files = {path.stem: path.read_text() for path in (TESTS / "fixtures/mindcluster").glob("*.json")}
    shipped = load_catalog([SHIPPED], Settings()).catalog
    loaded = site(**files)
    assert {key: found.level for key, found in loaded.catalog.rows.items()} == {
        key: found.level for key, found in shipped.rows.items()
    }
    assert loaded.warnings == (
        (
            "faultCode.json:30: RestartBusinessCodes.B4060011: is listed already in RestartBusinessCodes;"
            " once is enough"
        ),
        (
            "faultCode.json:63: SeparateNPUCodes.A2301001: is listed also in RestartBusinessCodes;"
            " the stricter counts: SeparateNPU"
        ),
    )


def test_a_level_replaces_the_shipped_one_and_leaves_the_rest_of_the_row(site: Site, tmp_path: Path) -> None:
    shipped = row(load_catalog([SHIPPED], Settings()).catalog, "80E18005")
    found = row(site(faultCode={"SeparateNPUCodes": ["80E18005"]}).catalog, "80E18005")
    assert (found.level, found.file) == (Level.SEPARATE_NPU, f"{tmp_path}/faultCode.json:3")
    assert (found.name, found.description, found.clear_on) == (
        shipped.name,
        shipped.description,
        shipped.clear_on,
    )


def test_a_level_that_a_file_changes_is_the_files_word(site: Site) -> None:
    loaded = site(faultCode={"SeparateNPUCodes": ["80C98002"], "RestartRequestCodes": ["80CB8002"]})
    changed, same = row(loaded.catalog, "80C98002"), row(loaded.catalog, "80CB8002")
    assert (changed.level_source, changed.level_reason) == ("mindcluster", "")
    assert (same.level_source, bool(same.level_reason)) == ("nodeagent", True)


def test_the_sites_toml_lies_over_the_vendors_files(site: Site) -> None:
    loaded = site(
        faultCode={"SeparateNPUCodes": ["80E18005"]},
        toml='[codes.80E18005]\nkind = "chip"\nname = "ours"\nlevel = "NotHandleFault"\n',
    )
    assert (row(loaded.catalog, "80E18005").name, row(loaded.catalog, "80E18005").level) == (
        "ours",
        Level.NOT_HANDLE,
    )


def test_codes_that_a_file_omits_keep_their_level_and_are_counted_once(site: Site) -> None:
    loaded = site(faultCode={"SeparateNPUCodes": ["80E18005"]})
    assert loaded.warnings == (
        "faultCode.json: codes of kind chip that are not in it and keep their level: 801",
    )
    assert row(loaded.catalog, "80E01801").level is Level.RESTART_BUSINESS


def test_a_code_that_only_the_file_knows_gets_a_row_with_its_decoded_name(site: Site) -> None:
    found = row(site(faultCode={"RestartNPUCodes": ["80e18009"]}).catalog, "80E18009")
    assert (found.code, found.name, found.level) == (
        "80E18009",
        "HBM RAS State: bus error, probably caused by software",
        Level.RESTART_NPU,
    )


def test_a_new_switch_code_affects_the_node_and_prints_as_written(site: Site) -> None:
    found = row(
        site(SwitchFaultCode={"ResetFaultCodes": ["[0x00f1ff09,155914,cpu,na]"]}).catalog,
        "[0x00F1FF09,155914,CPU,NA]",
    )
    assert (found.code, found.kind, found.level, found.affects) == (
        "[0x00f1ff09,155914,cpu,na]",
        Kind.UNIFIEDBUS,
        Level.RESET_FAULT,
        Affects.NODE,
    )


def test_keys_and_codes_are_taken_in_any_case(site: Site) -> None:
    loaded = site(faultCode={"separatenpucodes": ["80e18005"]})
    assert (row(loaded.catalog, "80E18005").code, row(loaded.catalog, "80E18005").level) == (
        "80E18005",
        Level.SEPARATE_NPU,
    )


def test_nine_digit_codes_are_the_same_with_and_without_leading_zeros(site: Site) -> None:
    loaded = site(faultCode={"NotHandleFaultCodes": ["20001002"], "SubHealthFaultCodes": ["020001002"]})
    found = row(loaded.catalog, "20001002")
    assert (found.code, found.level) == ("020001002", Level.SUB_HEALTH)
    assert about(loaded, "020001002") == [
        (
            "faultCode.json:6: SubHealthFaultCodes.020001002: is listed also in NotHandleFaultCodes;"
            " the stricter counts: SubHealthFault"
        )
    ]


# --------------------------------------------------------------------------- what is contradictory


def test_of_two_levels_of_a_chip_code_the_stricter_counts(site: Site) -> None:
    loaded = site(faultCode={"SeparateNPUCodes": ["80E18005"], "NotHandleFaultCodes": ["80e18005"]})
    assert row(loaded.catalog, "80E18005").level is Level.SEPARATE_NPU
    assert about(loaded, "stricter") == [
        (
            "faultCode.json:3: SeparateNPUCodes.80E18005: is listed also in NotHandleFaultCodes;"
            " the stricter counts: SeparateNPU"
        )
    ]


def test_a_network_code_at_a_level_that_restarts_is_not_handled(site: Site) -> None:
    loaded = site(faultCode={"RestartNPUCodes": ["81078603"]})
    assert row(loaded.catalog, "81078603").level is Level.NOT_HANDLE
    assert about(loaded, "81078603") == [
        (
            "faultCode.json:3: RestartNPUCodes.81078603: a fault of a network port cannot have RestartNPU:"
            " NotHandleFault counts"
        )
    ]


def test_a_network_list_gives_levels_to_network_codes_only(site: Site) -> None:
    loaded = site(faultCode={"SeparateNPUNetworkCodes": ["81078603", "80E18005"]})
    assert row(loaded.catalog, "81078603").level is Level.SEPARATE_NPU
    assert row(loaded.catalog, "80E18005").level is Level.RESTART_NPU
    assert about(loaded, "80E18005") == [
        (
            "faultCode.json:4: SeparateNPUNetworkCodes.80E18005: not a code of the network ports;"
            " not taken from here"
        )
    ]


def test_a_chip_code_that_is_no_number_is_skipped(site: Site) -> None:
    loaded = site(faultCode={"SeparateNPUCodes": ["80E1800X", "80E18005"]})
    assert row(loaded.catalog, "80E18005").level is Level.SEPARATE_NPU
    assert about(loaded, "80E1800X") == [
        "faultCode.json:3: SeparateNPUCodes.80E1800X: not a code of eight or nine hexadecimal digits; skipped"
    ]


@pytest.mark.parametrize(
    "code",
    ["0x08520003,na,L2,na", "[0x08520003,na,L2]", "[0x08520003,na,L2,na,na]", f"[{'0' * 45},na,L2,na]"],
)
def test_a_switch_code_in_another_form_is_dropped(site: Site, code: str) -> None:
    loaded = site(SwitchFaultCode={"SeparateFaultCodes": [code, "[0x08520003,na,L2,na]"]})
    assert row(loaded.catalog, "[0x08520003,na,L2,na]").level is Level.SEPARATE_FAULT
    assert about(loaded, "such as") == [
        (
            f"SwitchFaultCode.json:3: SeparateFaultCodes.{code}: not a switch code such as"
            " [0x08520003,na,L2,na], of at most 50 characters; skipped"
        )
    ]


def test_a_switch_level_that_there_is_not_here_is_not_taken(site: Site) -> None:
    loaded = site(SwitchFaultCode={"PreSeparateFaultCodes": ["[0x08520003,na,L2,na]"]})
    assert row(loaded.catalog, "[0x08520003,na,L2,na]").level is Level.NOT_HANDLE
    assert about(loaded, "PreSeparate") == [
        (
            "SwitchFaultCode.json:2: PreSeparateFaultCodes: not a level of this kind here;"
            " its codes are not taken"
        )
    ]


def test_a_node_code_in_two_levels_keeps_the_whole_file_from_being_taken(site: Site) -> None:
    loaded = site(
        NodeDConfiguration={
            "FaultTypeCode": {
                "NotHandleFaultCodes": ["2C000031", "0000001D"],
                "SeparateFaultCodes": ["2C000031"],
            }
        }
    )
    assert row(loaded.catalog, "0000001D").level is Level.PRE_SEPARATE_FAULT
    assert loaded.warnings == (
        (
            "NodeDConfiguration.json:8: FaultTypeCode.SeparateFaultCodes.2C000031: is listed also in"
            " NotHandleFaultCodes"
        ),
        "NodeDConfiguration.json: not taken for that, as the vendor does; its codes keep their levels",
    )


def test_a_public_code_counts_with_its_stricter_level(site: Site) -> None:
    loaded = site(
        publicFaultConfiguration={
            "publicFaultCode": {"SeparateNPUCodes": ["010001001"], "SubHealthFaultCodes": ["010001001"]},
            "publicFaultResource": ["CCAE"],
        }
    )
    assert row(loaded.catalog, "010001001").level is Level.SEPARATE_NPU


def test_a_code_of_another_kind_keeps_its_level(site: Site) -> None:
    loaded = site(faultCode={"SeparateNPUCodes": ["010001001"]})
    assert row(loaded.catalog, "010001001").level is Level.SUB_HEALTH
    assert about(loaded, "kind public") == [
        (
            "faultCode.json:3: SeparateNPUCodes.010001001: 010001001 is of kind public at"
            f" {row(loaded.catalog, '010001001').file}; this level is not taken"
        )
    ]


def test_a_key_that_stands_twice_counts_as_it_stands_last(site: Site) -> None:
    loaded = site(faultCode='{"SeparateNPUCodes": ["80E18005"], "SeparateNPUCodes": []}')
    assert row(loaded.catalog, "80E18005").level is Level.RESTART_NPU
    assert about(loaded, "twice") == [
        "faultCode.json:1: SeparateNPUCodes: appears twice; the last one counts"
    ]


def test_unknown_keys_and_files_are_ignored_aloud(site: Site) -> None:
    loaded = site(faultCode={"SeparateGPUCodes": ["80E18005"]}, faultDuration=[])
    assert about(loaded, "ignored") == [
        "faultCode.json:2: SeparateGPUCodes: not a key of this file; ignored",
        (
            "faultDuration.json: not one of MindCluster's files, which are faultCode.json,"
            " SwitchFaultCode.json, NodeDConfiguration.json, publicFaultConfiguration.json,"
            " faultCustomization.json; ignored"
        ),
    ]


# --------------------------------------------------------------------------- what is no such file at all


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "faultCode.json:1: not valid JSON: Expecting value"),
        ('{\n"SeparateNPUCodes": [,]}', "faultCode.json:2: not valid JSON: Expecting value"),
        ("[]", "faultCode.json: its lists must be in an object, { }"),
        ('{"SeparateNPUCodes": NaN}', "faultCode.json: not valid JSON: NaN is no number"),
        ("[" * 100_000, f"faultCode.json:1: not valid JSON: {TOO_DEEP}"),
        (f'{{"A": {"[" * 100}{"]" * 100}}}', f"faultCode.json:1: A{'[0]' * 31}: {TOO_DEEP}"),
        (f'{{\n"A": {"9" * 5000}}}', f"faultCode.json:2: not valid JSON: {TOO_LARGE}"),
        (f'{{\n"A": {2**63}}}', f"faultCode.json:2: A: {TOO_LARGE}"),
        (
            '{"SeparateNPUCodes": "80E18005"}',
            (
                'faultCode.json:1: SeparateNPUCodes: "80E18005" is given'
                " where a list of codes in quotes is needed"
            ),
        ),
        (
            '{"SeparateNPUCodes": [7]}',
            "faultCode.json:1: SeparateNPUCodes: 7 is given where a code in quotes is needed",
        ),
    ],
)
def test_what_is_not_in_the_vendors_form_refuses_the_tables(
    site: Site, tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(TablesError) as refused:
        site(faultCode=text)
    assert str(refused.value) == f"{tmp_path}/{reason}"


def test_lists_that_do_not_stand_where_they_must_refuse_the_tables(site: Site, tmp_path: Path) -> None:
    with pytest.raises(TablesError) as refused:
        site(NodeDConfiguration={"SeparateFaultCodes": []})
    assert str(refused.value) == (
        f"{tmp_path}/NodeDConfiguration.json: FaultTypeCode is missing, which must hold its lists"
    )
