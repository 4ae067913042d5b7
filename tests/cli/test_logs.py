"""What a program's own log looks like, by who reads it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SAYS = "import logging; from nodeagent.cli.shared import logs; logs.begin(); logging.warning('a word')"


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
