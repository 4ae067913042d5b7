"""docs/first-hour.md, block by block: its commands work in this order, and lead to what it shows."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nodeagent.emulator.node import EmulatedNode
from tests.documents import BLOCK, called, shell_words
from tests.emulator.walk import call, emulated, seen, without_times
from tests.harness.configuration import ROOT
from tests.harness.node import Node
from tests.waiting import wait_until

DOCUMENT: Final = ROOT / "docs/first-hour.md"
STATUSES: Final = {"scan": 1}
"""Exit statuses of commands that report a fault."""


def test_the_first_hour_goes_as_it_is_written(tmp_path: Path) -> None:
    words: list[str] = []
    resets = f'[reset]\nannounce = "5s"\nrun_dir = "{tmp_path}/reset"\n'
    with emulated(tmp_path, sections=resets) as (node, chips), node.daemon() as stream:
        seen(stream, 9)
        wait_until(lambda: "kmsg does not observe" not in call(node, chips, ["status"]).stdout)
        for block in BLOCK.finditer(DOCUMENT.read_text()):
            if block["language"] == "text":
                _until_shown(node, chips, words, block["text"])
                continue
            for line in shell_words(block["text"]):
                words = called(line)[1:]
                if line != ["./dev", "run"]:
                    assert call(node, chips, words).returncode == STATUSES.get(words[0], 0), words


def _until_shown(node: Node, chips: EmulatedNode, words: Sequence[str], shown: str) -> None:
    """Until the command, called again and again, prints each line that is shown. It may print more."""
    lines = _comparable(shown)
    wait_until(lambda: lines <= _comparable(call(node, chips, words).stdout), shown)


def _comparable(status: str) -> set[str]:
    return {re.sub(r"\d+ events", "EVENTS", line) for line in without_times(status) if line}
