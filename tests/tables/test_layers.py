"""How files and folders of tables lie over one another."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nodeagent.core.model import Level
from nodeagent.tables.load import Loaded, TablesError

Load = Callable[..., Loaded]


def row(level: str, code: str = "A1") -> str:
    return f'[codes.{code}]\nkind = "chip"\nname = "{level}"\nlevel = "{level}"\n'


def frequency(identifier: str, times: int, codes: str = '"A1"') -> str:
    return (
        f'[[frequency]]\nid = "{identifier}"\ncodes = [{codes}]\ntimes = {times}\n'
        'time_window = "24h"\nlevel = "ManuallySeparateNPU"\n'
    )


def test_the_stricter_row_wins_within_a_folder_with_a_warning(load: Load, tmp_path: Path) -> None:
    loaded = load(
        {"a.toml": row("RestartNPU"), "b.toml": row("SeparateNPU"), "c.toml": row("SubHealthFault")}
    )
    assert loaded.catalog.rows["A1"].level is Level.SEPARATE_NPU
    assert loaded.warnings == (
        (
            f"{tmp_path}/1/a.toml:1: A1 is defined also at {tmp_path}/1/b.toml:1;"
            " the stricter counts: SeparateNPU, not RestartNPU"
        ),
        (
            f"{tmp_path}/1/c.toml:1: A1 is defined also at {tmp_path}/1/b.toml:1;"
            " the stricter counts: SeparateNPU, not SubHealthFault"
        ),
    )


def test_a_later_folder_wins_as_a_whole_row_also_when_laxer(load: Load, tmp_path: Path) -> None:
    loaded = load(
        {"a.toml": row("SeparateNPU") + 'user_induced = true\ndescription = "shipped"\n'},
        {"z.toml": row("NotHandleFault")},
    )
    winner = loaded.catalog.rows["A1"]
    assert (winner.level, winner.user_induced, winner.description, winner.file, loaded.warnings) == (
        Level.NOT_HANDLE,
        False,
        "",
        f"{tmp_path}/2/z.toml:1",
        (),
    )


def without_level(kind: str = "chip") -> str:
    return f'[codes.A1]\nkind = "{kind}"\nname = "of the site"\n'


def test_a_row_without_a_level_has_the_default(load: Load) -> None:
    assert load({"a.toml": without_level()}).catalog.rows["A1"].level is Level.SUB_HEALTH


@pytest.mark.parametrize("between", [{}, {"a.toml": without_level()}])
def test_a_row_without_a_level_changes_none(load: Load, between: dict[str, str]) -> None:
    winner = load({"a.toml": row("SeparateNPU")}, between, {"z.toml": without_level()}).catalog.rows["A1"]
    assert (winner.name, winner.level) == ("of the site", Level.SEPARATE_NPU)


def test_a_level_of_another_kind_is_not_taken_over(load: Load) -> None:
    loaded = load({"a.toml": row("SeparateNPU")}, {"z.toml": without_level("link")})
    assert loaded.catalog.rows["A1"].level is Level.SUB_HEALTH


def test_where_the_default_is_no_level_of_the_kind_one_has_to_be_said(load: Load) -> None:
    with pytest.raises(TablesError) as refused:
        load({"a.toml": without_level("node")})
    assert str(refused.value).endswith(
        "a.toml:1: codes.A1.level: missing, and SubHealthFault is not a level of kind node;"
        " those are NotHandleFault, PreSeparateFault, SeparateFault"
    )


def test_a_later_folder_wins_over_another_spelling_and_prints_its_own(load: Load) -> None:
    loaded = load({"a.toml": row("SeparateNPU", "020001002")}, {"a.toml": row("NotHandleFault", "20001002")})
    assert [(key, found.code, found.level) for key, found in loaded.catalog.rows.items()] == [
        ("20001002", "20001002", Level.NOT_HANDLE)
    ]


def test_whose_word_a_level_is_the_head_of_a_file_says_for_rows_that_do_not(load: Load) -> None:
    own = 'level_source = "dcgm"\nlevel_reason = "seen twice"\n'
    loaded = load(
        {"a.toml": 'level_source = "xid_catalogue"\n' + row("SeparateNPU") + row("SeparateNPU", "A2") + own}
    )
    assert [(found.level_source, found.level_reason) for found in loaded.catalog.rows.values()] == [
        ("xid_catalogue", ""),
        ("dcgm", "seen twice"),
    ]


def test_enabled_false_takes_a_row_and_a_rule_away(load: Load) -> None:
    loaded = load(
        {"a.toml": row("SeparateNPU") + row("SeparateNPU", "B1") + frequency("r", 3, '"B1"')},
        {"a.toml": '[codes.A1]\nenabled = false\n[[frequency]]\nid = "r"\nenabled = false\n'},
    )
    assert (list(loaded.catalog.rows), loaded.catalog.frequency, loaded.warnings) == (["B1"], (), ())


def test_a_shipped_rule_that_names_a_code_the_site_took_away_is_warned_of(load: Load, tmp_path: Path) -> None:
    loaded = load(
        {"a.toml": row("SeparateNPU") + row("SeparateNPU", "B1") + frequency("r", 3, '"A1", "B1"')},
        {"a.toml": "[codes.A1]\nenabled = false\n"},
    )
    assert loaded.warnings == (f"{tmp_path}/1/a.toml:9: r names A1, which {tmp_path}/2/a.toml:1 takes away",)


def test_taking_away_what_is_not_there_is_warned_of(load: Load, tmp_path: Path) -> None:
    loaded = load({"a.toml": row("SeparateNPU")}, {"a.toml": "[codes.A2]\nenabled = false\n"})
    assert loaded.warnings == (f"{tmp_path}/2/a.toml:1: A2: enabled = false, but there is no such row",)


def test_a_later_folder_replaces_a_rule_by_its_id(load: Load) -> None:
    loaded = load({"a.toml": row("SeparateNPU") + frequency("r", 3)}, {"a.toml": frequency("r", 5)})
    assert [rule.times for rule in loaded.catalog.frequency] == [5]


def test_a_sites_own_rule_on_a_code_comes_before_the_shipped_one(load: Load, tmp_path: Path) -> None:
    loaded = load({"a.toml": row("SeparateNPU") + frequency("shipped", 3)}, {"a.toml": frequency("site", 5)})
    assert [rule.id for rule in loaded.catalog.frequency] == ["site", "shipped"]
    assert loaded.warnings == (
        (
            f"{tmp_path}/1/a.toml:5: frequency rule shipped names A1,"
            f" but site at {tmp_path}/2/a.toml:1 counts for it"
        ),
    )


def test_of_many_codes_that_have_another_rule_a_few_are_named(load: Load, tmp_path: Path) -> None:
    codes = [f"A{number}" for number in range(6)]
    listed = ", ".join(f'"{code}"' for code in codes)
    rows = "".join(row("SeparateNPU", code) for code in codes)
    loaded = load(
        {"a.toml": rows + frequency("shipped", 3, listed)}, {"a.toml": frequency("site", 5, listed)}
    )
    assert loaded.warnings == (
        (
            f"{tmp_path}/1/a.toml:25: frequency rule shipped names A0, A1, A2, A3 and 2 more,"
            f" but site at {tmp_path}/2/a.toml:1 counts for it"
        ),
    )


def test_a_rule_may_name_a_code_without_a_row_that_decodes(load: Load, tmp_path: Path) -> None:
    decode = '[decode.parts]\n070 = "HBM"\n[decode.sensors.C0]\nname = "RAS State"\n'
    loaded = load({"a.toml": row("SeparateNPU") + decode + frequency("r", 3, '"80E18009"')})
    assert loaded.warnings == (
        f"{tmp_path}/1/a.toml:9: r names 80E18009 (HBM RAS State: state 9), which has no row",
    )


def test_a_later_folder_renames_a_part_of_decoded_codes(load: Load) -> None:
    decode = '[decode.parts]\n070 = "{}"\n[decode.sensors.C0]\nname = "RAS State"\nstates = ["error"]\n'
    loaded = load({"a.toml": row("SeparateNPU") + decode.format("HBM")}, {"a.toml": decode.format("Memory")})
    assert loaded.catalog.decoding.name("80E18000") == "Memory RAS State: error"


def test_one_id_in_two_files_of_a_folder_is_refused(load: Load, tmp_path: Path) -> None:
    with pytest.raises(TablesError) as refused:
        load({"a.toml": row("SeparateNPU") + frequency("r", 3), "b.toml": frequency("r", 3)})
    assert str(refused.value) == (
        f'{tmp_path}/1/b.toml:2: frequency[0].id: "r" is defined already'
        f" at {tmp_path}/1/a.toml:5; each id once"
    )


def test_a_recovery_that_a_pattern_tells_closes_a_row_of_the_kernel_log(load: Load) -> None:
    down = '[[pattern]]\nid = "DOWN"\ncode = "A1"\nregex = "^down$"\ndevice = "node"\n'
    up = '[[pattern]]\nid = "UP"\ncode = "A1"\nregex = "^up$"\ndevice = "node"\nassertion = "recover"\n'
    loaded = load({"a.toml": row("RestartNPU") + 'clear_on = ["recover"]\n' + down + up})
    assert [pattern.assertion for pattern in loaded.catalog.patterns] == ["once", "recover"]


def test_a_mild_row_that_nothing_closes_is_only_warned_of(load: Load, tmp_path: Path) -> None:
    pattern = '[[pattern]]\nid = "P"\ncode = "A{n}"\nregex = "^x(?P<n>1)$"\ndevice = "node"\n'
    loaded = load({"a.toml": row("SubHealthFault") + 'clear_on = ["recover"]\n' + pattern})
    assert loaded.warnings == (
        (
            f"{tmp_path}/1/a.toml:5: codes.A1.clear_on: nothing could close it:"
            " kernel lines (P) never report a recovery; add reboot, operator or a quiet time"
        ),
    )
