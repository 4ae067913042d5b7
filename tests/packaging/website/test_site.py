"""The site as `./dev docs` builds it: Sphinx finds each link and heading, and the search finds a code."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.documents import DOCUMENTS, ROOT

INDEX: Final = ROOT / "packaging/website/index.md"


def test_the_index_lists_each_document() -> None:
    listed = set(re.findall(r"^(?:.* <)?([A-Za-z][\w/-]+)(?:\.md>)?$", INDEX.read_text(), flags=re.MULTILINE))
    documents = {str(each.relative_to(ROOT).with_suffix("")) for each in DOCUMENTS}

    assert {each for each in documents - listed if not each.startswith("docs/decisions/0")} == set()


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'packaging'}"}
    command = [sys.executable, "-m", "website", str(folder)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=250)


@pytest.mark.slow
def test_it_is_built_without_a_warning_and_finds_a_code(tmp_path: Path) -> None:
    built = build(tmp_path)

    assert (built.returncode, built.stderr) == (0, "")
    html = tmp_path / "html"
    pages = {str(each.relative_to(html).with_suffix(".md")) for each in html.rglob("*.html")}
    assert {str(each.relative_to(ROOT)) for each in DOCUMENTS} - pages == set()
    index = (html / "searchindex.js").read_text()
    assert re.search(r'"80e01801":', index)
