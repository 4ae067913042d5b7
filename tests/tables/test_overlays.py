"""Rows and rules of a site that say only some keys: they change these of the ones below."""

from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.core.catalog.catalog import ClearOn, Row
from nodeagent.core.model import Kind, Level
from nodeagent.tables.load import TablesError
from tests.tables.conftest import Load

SHIPPED = """
vendor = "acme"
level_source = "dcgm"
[codes.A1]
kind = "chip"
name = "a"
level = "SeparateNPU"
levels = { deep = "RestartNPU", other = "SubHealthFault" }
user_induced = true
clear_on = ["reboot", "operator"]
description = "it broke"
action = "mend it"
level_reason = "seen twice"
[codes.B1]
kind = "host"
name = "b"
level = "SeparateFault"
[[frequency]]
id = "often"
codes = ["A1"]
times = 3
time_window = "24h"
level = "ManuallySeparateNPU"
[[duration]]
id = "long"
codes = ["B1"]
fault_timeout = "1m"
recover_timeout = "2m"
level = "PreSeparateFault"
"""


def changed(load: Load, *layers: str, code: str = "A1") -> Row:
    return load({"a.toml": SHIPPED}, *({"s.toml": layer} for layer in layers)).catalog.rows[code]


@pytest.fixture
def shipped(tmp_path: Path) -> Row:
    """As the row of A1 is, said to stand where the overlay does."""
    return Row(
        code="A1",
        kind=Kind.CHIP,
        vendor="acme",
        name="a",
        level=Level.SEPARATE_NPU,
        levels={"DEEP": Level.RESTART_NPU, "OTHER": Level.SUB_HEALTH},
        user_induced=True,
        clear_on=ClearOn(reboot=True, operator=True),
        description="it broke",
        action="mend it",
        level_source="dcgm",
        level_reason="seen twice",
        file=f"{tmp_path}/2/s.toml:1",
    )


def test_a_level_alone_leaves_all_else_but_whose_word_it_was(load: Load, shipped: Row) -> None:
    row = changed(load, '[codes.A1]\nlevel = "SubHealthFault"\n')
    assert row == replace(shipped, level=Level.SUB_HEALTH, level_source="", level_reason="")


def test_the_same_level_stays_the_word_of_the_same(load: Load, shipped: Row) -> None:
    assert changed(load, '[codes.A1]\nlevel = "SeparateNPU"\n') == shipped


def test_whose_word_a_level_is_may_be_said_with_it(load: Load, shipped: Row) -> None:
    row = changed(
        load, 'level_source = "nodeagent"\n[codes.A1]\nlevel = "RestartNPU"\nlevel_reason = "we tried"\n'
    )
    assert (row.level, row.level_source, row.level_reason) == (Level.RESTART_NPU, "nodeagent", "we tried")


@pytest.mark.parametrize(
    ("says", "change"),
    [
        ('name = "ours"', {"name": "ours"}),
        ('clear_on = ["recover", "10m"]', {"clear_on": ClearOn(recover=True, quiet_ns=600_000_000_000)}),
        ("user_induced = false", {"user_induced": False}),
        ('action = " call Bob "', {"action": "call Bob"}),
        (
            'levels = { Deep = "SubHealthFault", new = "NotHandleFault" }',
            {"levels": {"DEEP": Level.SUB_HEALTH, "OTHER": Level.SUB_HEALTH, "NEW": Level.NOT_HANDLE}},
        ),
    ],
)
def test_any_other_key_alone_leaves_all_else(
    load: Load, shipped: Row, says: str, change: dict[str, object]
) -> None:
    assert changed(load, f"[codes.A1]\n{says}\n") == replace(shipped, **change)  # type: ignore[arg-type]


def test_the_head_of_its_file_is_for_whole_rows(load: Load, shipped: Row) -> None:
    row = changed(load, 'kind = "host"\nvendor = "x"\naffects = "node"\n[codes.A1]\nuser_induced = true\n')
    assert row == replace(shipped, file=row.file)


def test_a_row_with_name_and_kind_replaces_the_whole_row(load: Load) -> None:
    row = changed(load, 'kind = "chip"\n[codes.A1]\nname = "ours"\nlevel = "SubHealthFault"\n')
    assert (row.name, row.user_induced, row.action, row.vendor) == ("ours", False, "", "")


def test_overlays_lie_over_one_another(load: Load) -> None:
    row = changed(load, '[codes.A1]\nlevel = "RestartNPU"\n', '[codes.a1]\nname = "ours"\n')
    assert (row.code, row.level, row.name) == ("A1", Level.RESTART_NPU, "ours")


def test_an_overlay_changes_a_row_of_its_own_folder(load: Load) -> None:
    whole = '[codes.C1]\nkind = "chip"\nname = "c"\nlevel = "SeparateNPU"\naction = "x"\n'
    loaded = load({"a.toml": SHIPPED}, {"z.toml": whole, "a.toml": '[codes.C1]\nlevel = "RestartNPU"\n'})
    assert (loaded.catalog.rows["C1"].level, loaded.catalog.rows["C1"].action) == (Level.RESTART_NPU, "x")


def test_files_of_a_folder_may_change_different_keys(load: Load) -> None:
    loaded = load(
        {"a.toml": SHIPPED},
        {"a.toml": '[codes.A1]\nlevel = "RestartNPU"\n', "b.toml": '[codes.A1]\nname = "ours"\n'},
    )
    assert (loaded.catalog.rows["A1"].level, loaded.catalog.rows["A1"].name) == (Level.RESTART_NPU, "ours")


def test_a_rule_changes_single_keys_of_the_one_with_its_id_and_stays_in_its_place(load: Load) -> None:
    other = (
        '[[frequency]]\nid = "other"\ncodes = ["A1"]\ntimes = 9\ntime_window = "1h"\nlevel = "SeparateNPU"\n'
    )
    shipped = SHIPPED.replace("[[duration]]", f'{other}release_time_window = "1h"\n[[duration]]')
    site = '[[frequency]]\nid = "often"\ntimes = 5\n[[duration]]\nid = "long"\nfault_timeout = "5m"\n'
    catalog = load({"a.toml": shipped}, {"s.toml": site}).catalog
    assert [rule.id for rule in catalog.frequency] == ["often", "other"]
    assert (catalog.frequency[0].times, catalog.frequency[0].codes, catalog.frequency[0].level) == (
        5,
        ("A1",),
        Level.MANUALLY_SEPARATE_NPU,
    )
    assert catalog.duration[0].fault_timeout_ns == 300_000_000_000
    assert catalog.duration[0].recover_timeout_ns == 120_000_000_000
    assert catalog.frequency[0].file.endswith("/2/s.toml:1")


def test_a_release_that_is_taken_from_a_rule_is_that_by_a_person(load: Load) -> None:
    shipped = SHIPPED.replace("times = 3\n", 'times = 3\nrelease_time_window = "1h"\n')
    site = '[[frequency]]\nid = "often"\nrelease_time_window = "0s"\n'
    assert load({"a.toml": shipped}, {"s.toml": site}).catalog.frequency[0].release_ns is None


def test_what_says_nothing_is_warned_of(load: Load, tmp_path: Path) -> None:
    loaded = load({"a.toml": SHIPPED}, {"s.toml": '[codes.A1]\n[[frequency]]\nid = "often"\n'})
    assert loaded.warnings == (
        f"{tmp_path}/2/s.toml:1: A1 sets no key, and changes nothing",
        f"{tmp_path}/2/s.toml:2: often sets no key, and changes nothing",
    )


REFUSED = [
    (
        "a code that no table has",
        '[codes.A11]\nlevel = "SeparateNPU"\n',
        (
            "s.toml:1: codes.A11.name: missing; it must be a short text in quotes"
            " (no table below has a row of this code; the nearest is A1)"
        ),
    ),
    (
        "a code that no table has, and whose name is said",
        '[codes.ZZZ]\nname = "z"\n',
        (
            "s.toml:1: codes.ZZZ.kind: missing here and at the top of the file;"
            " it must be one of chip, unifiedbus, node, public, link, host"
            " (no table below has a row of this code)"
        ),
    ),
    (
        "an unknown key",
        '[codes.A1]\nlevle = "SeparateNPU"\n',
        's.toml:2: codes.A1.levle: unknown key; the nearest known is "level"',
    ),
    (
        "a level that is none",
        '[codes.A1]\n\nlevel = "SeparateGPU"\n',
        's.toml:3: codes.A1.level: "SeparateGPU": must be one of NotHandleFault, ',
    ),
    (
        "a level that is none of the kind of the row below",
        '[codes.A1]\nlevel = "SeparateFault"\n',
        "s.toml:2: codes.A1.level: SeparateFault is not a level of kind chip; those are ",
    ),
    (
        "a kind that has not the level below",
        '[codes.A1]\nkind = "node"\nlevels = {}\n',
        "s.toml:2: codes.A1.kind: SeparateNPU is not a level of kind node; those are ",
    ),
    (
        "a detail with a level of another kind",
        '[codes.A1.levels]\nnew = "SeparateFault"\n',
        "s.toml:2: codes.A1.levels.new: SeparateFault is not a level of kind chip",
    ),
    (
        "what nothing could close",
        "[codes.A1]\nclear_on = []\n",
        "s.toml:2: codes.A1.clear_on: empty: nothing could ever close the fault",
    ),
    (
        "a rule that no table has",
        '[[frequency]]\nid = "oftn"\ntimes = 5\n',
        (
            "s.toml:1: frequency[0].codes: missing; it must be a list of one or more codes in quotes"
            " (no table below has a rule of this id; the nearest is often)"
        ),
    ),
    (
        "a rule of another kind",
        '[[duration]]\nid = "often"\nlevel = "SeparateNPU"\n',
        's.toml:2: duration[0].id: "often": is a [[frequency]] at ',
    ),
    (
        "a value that is wrong in a rule",
        '[[frequency]]\nid = "often"\ntimes = 0\n',
        "s.toml:3: frequency[0].times: 0: must be a whole number from 1 to 100",
    ),
    (
        "what is wrong only with the keys below",
        '[[frequency]]\nid = "often"\nlevel = "SeparateNPU"\n',
        "s.toml:1: frequency[0].release_time_window: missing; ",
    ),
    (
        "codes of a rule that no table has",
        '[[frequency]]\nid = "often"\ncodes = ["A1", "A2"]\n',
        's.toml:3: frequency[0].codes: "A2": no row has this code',
    ),
]


@pytest.mark.parametrize(("text", "said"), [pytest.param(*story[1:], id=story[0]) for story in REFUSED])
def test_what_is_wrong_with_an_overlay_is_told_by_its_file_line_and_key(
    load: Load, tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(TablesError) as refused:
        load({"a.toml": SHIPPED}, {"s.toml": text})
    assert str(refused.value).splitlines()[0].startswith(f"{tmp_path}/2/{said}")


def test_one_key_twice_in_a_folder_is_refused(load: Load, tmp_path: Path) -> None:
    text = '[codes.A1]\nlevel = "RestartNPU"\n'
    with pytest.raises(TablesError) as refused:
        load({"a.toml": SHIPPED}, {"a.toml": text, "b.toml": text})
    assert str(refused.value) == (
        f"{tmp_path}/2/b.toml:2: codes.A1.level: is set already at {tmp_path}/2/a.toml:2;"
        " each key once in a folder"
    )


def test_a_row_that_the_layer_between_took_away_cannot_be_changed(load: Load, tmp_path: Path) -> None:
    away = '[codes.A1]\nenabled = false\n[[frequency]]\nid = "often"\nenabled = false\n'
    with pytest.raises(TablesError, match=r"/3/s.toml:1: codes.A1.name: missing; .*no table below has a row"):
        load({"a.toml": SHIPPED}, {"s.toml": away}, {"s.toml": '[codes.A1]\nlevel = "RestartNPU"\n'})
