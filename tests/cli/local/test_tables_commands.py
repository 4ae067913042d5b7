"""tables import and tables diff, as an operator runs them."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Nodeagent

VENDOR = ROOT / "tests/fixtures/mindcluster"
ROW = """
[codes.80E18005]
name = "HBM"
kind = "chip"
level = "{level}"
clear_on = {clear_on}
"""
RULE = """
[[frequency]]
id = "again"
codes = ["80E18005"]
times = {times}
time_window = "24h"
level = "ManuallySeparateNPU"
"""


def tables(folder: Path, level: str, clear_on: str = '["recover"]', times: int | None = None) -> Path:
    folder.mkdir()
    rule = RULE.format(times=times) if times else ""
    (folder / "site.toml").write_text(ROW.format(level=level, clear_on=clear_on) + rule)
    return folder


def test_a_named_folder_without_a_table_is_wrong(nodeagent: Nodeagent, tmp_path: Path) -> None:
    """``tables check /etc`` would call sound what it has not looked at."""
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/notes.txt").touch()
    ran = nodeagent("tables", "check", tmp_path / "tables", "-o", "json")
    (form,) = ran.json
    assert (ran.status, form["ok"]) == (1, False)
    assert [(each["file"], each["reason"]) for each in form["problems"]] == [
        (f"{tmp_path}/tables", "holds no table: no file ends in .toml or .json")
    ]


def test_an_imported_table_is_written_and_sound(nodeagent: Nodeagent, tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    out = tmp_path / "tables/mindcluster.toml"
    ran = nodeagent("tables", "import", VENDOR, "--out", out)
    assert (ran.status, ran.out) == (0, f"ok: 921 codes and 4 rules in {out}\n")
    assert ran.err == (
        f"warning: {VENDOR}/faultCode.json:30: RestartBusinessCodes.B4060011:"
        " is listed already in RestartBusinessCodes; once is enough\n"
        f"warning: {VENDOR}/faultCode.json:63: SeparateNPUCodes.A2301001:"
        " is listed also in RestartBusinessCodes; the stricter counts: SeparateNPU\n"
    )
    assert [path.name for path in out.parent.iterdir()] == ["mindcluster.toml"]
    assert nodeagent("tables", "check", out.parent).status == 0


def test_an_imported_table_goes_to_standard_output(nodeagent: Nodeagent, tmp_path: Path) -> None:
    text = nodeagent("tables", "import", VENDOR / "SwitchFaultCode.json").out
    form = nodeagent("tables", "import", VENDOR / "SwitchFaultCode.json", "-o", "json").json[0]
    assert form["toml"] == text
    assert (form["ok"], form["codes"], form["rules"], form["file"]) == (True, 30, 0, "")


def test_a_file_that_cannot_be_imported_writes_nothing(nodeagent: Nodeagent, tmp_path: Path) -> None:
    bad, out = tmp_path / "faultCode.json", tmp_path / "out.toml"
    bad.write_text('{"SeparateNPUCodes": 7}')
    ran = nodeagent("tables", "import", bad, "--out", out)
    assert (ran.status, out.exists()) == (1, False)
    assert ran.err == f"{bad}:1: SeparateNPUCodes: 7 is given where a list of codes in quotes is needed\n"


def test_where_nothing_can_be_written_the_import_fails(nodeagent: Nodeagent, tmp_path: Path) -> None:
    out = tmp_path / "none/out.toml"
    ran = nodeagent("tables", "import", VENDOR, "--out", out)
    assert ran.status == 1
    assert f"{out}: cannot be written: No such file or directory" in ran.err


def test_diff_shows_which_levels_rows_and_rules_change(nodeagent: Nodeagent, tmp_path: Path) -> None:
    before = tables(tmp_path / "before", "RestartNPU", times=3)
    after = tables(tmp_path / "after", "SeparateNPU", '["operator"]', times=5)
    ran = nodeagent("tables", "diff", before, after)
    assert (ran.status, ran.out.splitlines()) == (
        0,
        [
            "80E18005: RestartNPU -> SeparateNPU; clear_on [recover] -> [operator] (HBM)",
            "frequency rule again: times 3 -> 5",
        ],
    )
    (form,) = nodeagent("tables", "diff", before, after, "-o", "json").json
    assert form["codes"] == [
        {
            "code": "80E18005",
            "name": "HBM",
            "before": "RestartNPU",
            "after": "SeparateNPU",
            "fields": {"clear_on": [["recover"], ["operator"]]},
        }
    ]
    (rule,) = form["rules"]
    assert (rule["kind"], rule["id"], rule["before"]["times"], rule["after"]["times"]) == (
        "frequency",
        "again",
        3,
        5,
    )


def test_diff_shows_what_is_new_and_what_is_gone(nodeagent: Nodeagent, tmp_path: Path) -> None:
    before = tables(tmp_path / "before", "RestartNPU", times=3)
    after = tmp_path / "after"
    after.mkdir()
    (after / "t.toml").write_text('kind = "node"\n[codes.A1]\nname = "a"\nlevel = "SeparateFault"\n')
    assert nodeagent("tables", "diff", "--alone", before, after).out.splitlines() == [
        "80E18005: gone, was RestartNPU (HBM)",
        "A1: new, SeparateFault (a)",
        (
            "frequency rule again: gone, codes [80E18005], times 3, time_window 1d,"
            " level ManuallySeparateNPU, kind chip"
        ),
    ]


def test_diff_lays_a_sites_folder_over_the_shipped_tables(nodeagent: Nodeagent, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "faultCode.json").write_text(json.dumps({"SeparateNPUCodes": ["80E18005"]}))
    assert nodeagent("tables", "diff", ROOT / "fault_codes", site).out == (
        "80E18005: RestartNPU -> SeparateNPU (HBMC parity error)\n"
    )


def test_texts_for_people_are_no_difference(nodeagent: Nodeagent, tmp_path: Path) -> None:
    before = tables(tmp_path / "before", "RestartNPU")
    after = tables(tmp_path / "after", "RestartNPU")
    text = (after / "site.toml").read_text().replace('"HBM"', '"memory"')
    (after / "site.toml").write_text('level_source = "dcgm"\n' + text)
    assert nodeagent("tables", "diff", before, after).out == "no difference\n"


@pytest.mark.parametrize("output", ["text", "json"])
def test_tables_that_cannot_be_used_are_not_compared(
    nodeagent: Nodeagent, tmp_path: Path, output: str
) -> None:
    before, after = tables(tmp_path / "before", "RestartNPU"), tables(tmp_path / "after", "RestartGPU")
    ran = nodeagent("tables", "diff", before, after, "-o", output)
    assert ran.status == 1
    assert "RestartGPU" in ran.err + ran.out


def test_diff_shows_the_keys_that_an_overlay_changes_and_no_other(
    nodeagent: Nodeagent, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "site.toml").write_text(
        '[codes.XID_79]\nlevel = "PreSeparateNPU"\n[codes.XID_48]\naction = "Call Bob."\n'
        '[codes.XID_31]\nuser_induced = false\n[[frequency]]\nid = "xid-repeat"\ntimes = 5\n'
    )
    shipped = ROOT / "fault_codes"

    ran, texts = (
        nodeagent("tables", "diff", shipped, site),
        nodeagent("tables", "diff", "--texts", shipped, site),
    )
    (form,) = nodeagent("tables", "diff", shipped, site, "-o", "json").json

    assert ran.out.splitlines() == [
        "XID_31: user_induced true -> none (GPU memory page fault)",
        "XID_79: SeparateNPU -> PreSeparateNPU (GPU has fallen off the bus)",
        "frequency rule xid-repeat: times 3 -> 5",
    ]
    (about_48,) = [line for line in texts.out.splitlines() if line.startswith("XID_48: action ")]
    assert " -> Call Bob. (" in about_48
    assert [each["code"] for each in form["codes"]] == ["XID_31", "XID_79"]
    assert [each["id"] for each in form["rules"]] == ["xid-repeat"]
