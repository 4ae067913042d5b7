"""The commands in blocks of pages for operators, as they are written, on an emulated node with a fault."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.documents import ROOT, called, shell_lines
from tests.emulator.walk import call, emulated, seen

PAGES: Final = ("enabling-resets.md", "troubleshooting.md")
STATUSES: Final[Mapping[tuple[str, ...], int]] = {
    ("probe", "nvidia"): 69,  # the emulated node has no GPU
    ("job", "show"): 1,  # and no job
}
NEEDS_A_LOG: Final = "replay"


@pytest.mark.parametrize("page", PAGES)
def test_each_command_works(page: str, tmp_path: Path) -> None:
    statuses = {}
    with (
        emulated(tmp_path, sections=f'[reset]\nrun_dir = "{tmp_path}/reset"\n') as (node, chips),
        node.daemon() as stream,
    ):
        seen(stream, 9)
        assert call(node, chips, ["emulator", "raise", "npu3", "80E01801"]).returncode == 0
        stream.until(" raised ")
        for line in shell_lines(ROOT / "docs" / page):
            program, *words = called(line)
            if program == "nodeagent" and words[0] != NEEDS_A_LOG:
                statuses[tuple(words)] = call(node, chips, words).returncode

    assert ("reset", "npu3", "--once", "--dry-run") in statuses
    assert statuses == {words: STATUSES.get(words[:2], 0) for words in statuses}
