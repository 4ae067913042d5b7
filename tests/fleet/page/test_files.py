"""The files that the page is made of: their logic by node's own test runner, and what they must not hold."""

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from nodeagent.fleet.page import changes
from tests.waiting import WAIT_LIMIT_S

HERE: Final = Path(__file__).parent
STATIC: Final = Path(changes.__file__).parent / "static"
MARKUP: Final = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment"
    r"|\beval\(|new Function|javascript:|\bon[a-z]+="
)


def test_what_the_page_decides() -> None:
    ran = subprocess.run(
        ["node", "--test", HERE / "model.test.mjs"],
        env={**os.environ, "TZ": "Asia/Kolkata"},
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_LIMIT_S,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_script_of_the_page_can_be_parsed() -> None:
    subprocess.run(["node", "--check", STATIC / "page.mjs"], check=True, timeout=WAIT_LIMIT_S)


@pytest.mark.parametrize("path", sorted(STATIC.iterdir()), ids=lambda path: path.name)
def test_no_file_makes_markup_of_a_text_or_needs_another_site(path: Path) -> None:
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")
    assert MARKUP.findall(text) == []
    assert re.findall(r"https?:|//[a-z]+\.|@import|url\(", text) == []


def test_the_page_has_no_script_or_style_of_its_own() -> None:
    """The Content-Security-Policy would refuse it."""
    page = (STATIC / "index.html").read_text()
    assert re.findall(r"<script[^>]*>", page) == ['<script type="module" src="page.mjs">']
    assert "<style" not in page
    assert "style=" not in page


def test_the_page_knows_how_often_it_hears_of_the_server() -> None:
    model = (STATIC / "model.mjs").read_text()
    assert f"ALIVE_EVERY_MS = {changes.ALIVE_EVERY_S * 1000:_.0f};" in model
