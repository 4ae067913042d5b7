"""The changelog of the packages, from a text like CHANGELOG.md."""

import datetime
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from describe import changelog
from nodeagent import __version__
from tests.documents import ROOT

MAINTAINER = "somebody <somebody@example.invalid>"
MADE_AT_S = 1_790_000_000
TEXT = """\
# Changelog

What changed.

## Unreleased

### Added

- One thing, which takes more than a line to be told, since it is long: see
  [its document](docs/one.md#there) and `nodeagent one`.
- **Another**.

### Fixed

- A third.

## 0.1.0, 2026-11-23

The first version.

### Added

- All.
"""


def test_what_is_not_released_is_of_the_version_that_is_built() -> None:
    newest, first = changelog.read(TEXT, "0.2.0", MADE_AT_S)

    assert (newest.version, newest.made_at.timestamp()) == ("0.2.0", MADE_AT_S)
    long = "One thing, which takes more than a line to be told, since it is long: see its document and"
    assert newest.changes == {"Added": [f"{long} `nodeagent one`.", "Another."], "Fixed": ["A third."]}
    assert (first.version, first.changes) == ("0.1.0", {"Added": ["All."]})
    assert first.made_at == datetime.datetime(2026, 11, 23, tzinfo=datetime.UTC)


def test_a_released_version_keeps_its_day() -> None:
    text = TEXT.replace("## Unreleased", "## Unreleased\n\n## 0.2.0, 2026-11-28")

    newest, _ = changelog.read(text, "0.2.0", MADE_AT_S)

    assert newest.made_at == datetime.datetime(2026, 11, 28, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT.replace("Unreleased", "0.3.0, 2026-12-01"), "it begins with no entry for 0.2.0"),
        (TEXT.replace("0.1.0, 2026-11-23", "0.1.0"), "'## 0.1.0' has no date"),
        ("# Changelog\n", "it begins with no entry for 0.2.0"),
    ],
)
def test_a_changelog_without_this_version_or_a_date_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"^CHANGELOG\.md: ") as raised:
        changelog.read(text, "0.2.0", MADE_AT_S)
    assert said in str(raised.value)


def test_debians_form_is_read_by_dpkg(tmp_path: Path) -> None:
    file = tmp_path / "changelog"
    entries = changelog.read(TEXT, "0.2.0", MADE_AT_S)
    file.write_text(changelog.for_debian("nodeagent", entries, MAINTAINER))

    def told(*options: str) -> str:
        command = ["dpkg-parsechangelog", "-l", str(file), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.strip()

    assert told("-S", "Version") == "0.2.0"
    assert told("-S", "Maintainer") == MAINTAINER
    assert told("-S", "Timestamp") == str(MADE_AT_S)
    assert re.findall(r"^Version: (.*)$", told("--all", "--format", "rfc822"), flags=re.MULTILINE) == [
        *("0.2.0", "0.1.0")
    ]
    assert max(map(len, file.read_text().splitlines())) <= 80


def test_changes_since_a_release_need_a_higher_version() -> None:
    with pytest.raises(
        ValueError, match=re.escape("0.1.0 is released, and there are changes since; right is a higher")
    ):
        changelog.read(TEXT, "0.1.0", MADE_AT_S)


def test_a_heading_that_is_no_version_is_refused_with_its_line() -> None:
    text = TEXT.replace("## 0.1.0, 2026-11-23", "## 0.1.0, 2026-11-23 (withdrawn)")

    with pytest.raises(ValueError, match=r"CHANGELOG\.md:17: .* is no version; right is"):
        changelog.read(text, "0.2.0", MADE_AT_S)


def test_the_form_of_nfpm_has_an_entry_for_each_version() -> None:
    entries = changelog.read(TEXT, "0.2.0", MADE_AT_S)

    told = yaml.safe_load(changelog.for_nfpm(entries, MAINTAINER))

    assert [each["semver"] for each in told] == ["0.2.0-1", "0.1.0-1"]
    assert told[0]["changes"][2] == {"note": "Fixed: A third."}


def test_the_changelog_of_the_project_is_understood_as_a_whole() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    entries = changelog.read(text, __version__, MADE_AT_S)

    items = [line for line in text.splitlines() if line.startswith("- ")]
    assert sum(len(each) for entry in entries for each in entry.changes.values()) == len(items)
