"""Whom the vendor's library would kill: the lines of its list that it takes, and whom they mean."""

from pathlib import Path

import pytest

from nodeagent.drivers.ascend.users import killed_at_reset

KEY = "AllowKilledWhenResetNPU"


@pytest.fixture
def procfs(tmp_path: Path) -> Path:
    """With an exporter, 7, and a process whose name has a space, 8."""
    for pid, name in ((7, "exporter"), (8, "my tool")):
        (tmp_path / "proc" / str(pid)).mkdir(parents=True)
        (tmp_path / "proc" / str(pid) / "status").write_text(f"Name:\t{name}\nPid:\t{pid}\n")
    return tmp_path / "proc"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{KEY}:exporter:7\n", {7: "exporter"}),
        (f" {KEY} : exporter : 7 ", {7: "exporter"}),
        (f"{KEY}:my:8\n", {8: "my"}),
        (f"{KEY}:another:7\n", {}),
        (f"{KEY}:exporter:9\n", {}),
        (f"{KEY}:exporter:-7\n{KEY}:exporter\n{KEY}:exporter:7:1\nOther:exporter:7\n", {}),
        ("\n" * 9 + f"{KEY}:exporter:7\n", {7: "exporter"}),
        ("\n" * 10 + f"{KEY}:exporter:7\n", {}),
    ],
)
def test_a_line_means_a_process_that_runs_under_that_name(
    procfs: Path, tmp_path: Path, text: str, found: dict[int, str]
) -> None:
    (tmp_path / "list").write_text(text)
    assert killed_at_reset(procfs, tmp_path / "list") == found


def test_without_a_list_nobody_is_killed(procfs: Path, tmp_path: Path) -> None:
    assert killed_at_reset(procfs, tmp_path / "list") == {}
