"""What a program's own log looks like, by who reads it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SAYS = (
    "import logging; from nodeagent.cli.shared.foreground import begin_log;"
    " begin_log(); logging.warning('a word')"
)


@pytest.mark.parametrize(("is_journal", "begins"), [(True, "<4>root: a word"), (False, "WARNING")])
def test_lines_have_priorities_only_where_the_journal_reads_them(
    tmp_path: Path, is_journal: bool, begins: str
) -> None:
    """A program whose output a service has sent elsewhere still has the variable."""
    with (tmp_path / "log").open("w") as log:
        status = os.fstat(log.fileno())
        named = f"{status.st_dev}:{status.st_ino}" if is_journal else "8:1"
        subprocess.run(
            [sys.executable, "-c", SAYS], stderr=log, env={**os.environ, "JOURNAL_STREAM": named}, check=True
        )
    said = (tmp_path / "log").read_text()
    assert begins in said
    assert said.startswith("<") == is_journal


@pytest.mark.parametrize("is_journal", [True, False])
def test_what_a_message_quotes_is_printable_and_passes_for_no_other(tmp_path: Path, is_journal: bool) -> None:
    says = SAYS.replace("a word", r"a word\x1b]0;x\x07\u202e\n<0>root: forged")
    with (tmp_path / "log").open("w") as log:
        status = os.fstat(log.fileno())
        named = f"{status.st_dev}:{status.st_ino}" if is_journal else "8:1"
        environment = {**os.environ, "JOURNAL_STREAM": named}
        subprocess.run([sys.executable, "-c", says], stderr=log, env=environment, check=True)
    first, second = (tmp_path / "log").read_text().splitlines()
    assert first.endswith(r"a word\x1b]0;x\x07\u202e")
    assert second == ("<4><0>root: forged" if is_journal else "    <0>root: forged")
