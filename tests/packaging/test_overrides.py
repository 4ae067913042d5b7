"""What silences lintian and rpmlint says why, in the same file."""

from pathlib import Path

import pytest

from tests.documents import ROOT

FILES = [*sorted(ROOT.glob("packaging/lintian/*")), ROOT / "packaging/rpmlint.toml"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_each_override_has_its_reason_above_it(file: Path) -> None:
    blocks = file.read_text().split("\n\n")

    assert len(blocks) > 1
    assert [block for block in blocks if not block.strip().startswith("#")] == []


def test_there_is_a_file_for_each_debian_package() -> None:
    assert [file.name for file in FILES[:-1]] == ["nodeagent", "nodeagent-emulator"]
