"""What is wrong with a changelog before a release: each case by its words."""

import datetime

import pytest

from release.changelog import problems

TODAY = datetime.date(2026, 11, 28)
BELOW = "\n## 0.1.0, 2026-11-23\n\nThe first version.\n"


def found(text: str, version: str = "0.2.0") -> list[str]:
    return list(problems(text, version, TODAY))


@pytest.mark.parametrize(
    "text",
    [
        f"# Changelog\n\n## 0.2.0, 2026-11-28\n\n### Added\n\n- A thing.\n{BELOW}",
        f"# Changelog\n\n## Unreleased\n\n### Added\n\n## 0.2.0, 2026-11-23\n\n- A thing.\n{BELOW}",
        "## 0.2.0, 2026-11-28\n- The first version.",
    ],
    ids=["with kinds of changes", "an empty heading for what comes next", "the only one"],
)
def test_a_section_with_a_date_and_nothing_unreleased_above_it_is_right(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "# Changelog\n",
            (
                "CHANGELOG.md: there is no section of 0.2.0; right is the heading '## 0.2.0, 2026-11-28' "
                "above its changes"
            ),
        ),
        (
            f"## Unreleased\n\n- A thing.\n\n## 0.2.0, 2026-11-28\n\n- More.\n{BELOW}",
            (
                "CHANGELOG.md:1: changes stand under Unreleased, in line 3; right is the heading "
                "'## 0.2.0, 2026-11-28' above them"
            ),
        ),
        (
            f"## 0.2.0, 2026-11-28\n\n### Added\n{BELOW}",
            "CHANGELOG.md:1: nothing stands under 0.2.0; right is what changed in it",
        ),
        (
            f"## 0.3.0, 2026-11-28\n- New.\n## 0.2.0, 2026-11-28\n- Old.\n{BELOW}",
            (
                "CHANGELOG.md:3: 0.2.0 stands below 0.3.0 of line 1; right is the newest version first, "
                "and that it is the one to be released"
            ),
        ),
        (
            f"## 0.2.0, 2026-11-28\n- New.\n## 0.2.0, 2026-11-27\n- Old.\n{BELOW}",
            "CHANGELOG.md:3: 0.2.0 has a section in line 1 already; right is one",
        ),
        (
            f"## 0.2.0, 2026-11-29\n- New.\n{BELOW}",
            (
                "CHANGELOG.md:1: '## 0.2.0, 2026-11-29': that day is to come, today is 2026-11-28; "
                "right is '## 0.2.0, 2026-11-28'"
            ),
        ),
        (
            f"## 0.2.0, 2026-11-31\n- New.\n{BELOW}",
            "CHANGELOG.md:1: '## 0.2.0, 2026-11-31': there is no such day; right is '## 0.2.0, 2026-11-28'",
        ),
        (
            f"## 0.2.0, 2026-11-22\n- New.\n{BELOW}",
            (
                "CHANGELOG.md:1: 0.2.0 is of 2026-11-22, and 0.1.0 of 2026-11-23; "
                "right is '## 0.2.0, 2026-11-28'"
            ),
        ),
    ],
    ids=[
        "none",
        "a remainder",
        "empty",
        "not the newest",
        "twice",
        "to come",
        "no day",
        "before its predecessor",
    ],
)
def test_it_says_what_is_wrong_and_what_would_be_right(text: str, problem: str) -> None:
    assert found(text) == [problem]


@pytest.mark.parametrize(
    "heading", ["0.2.0", "v0.2.0, 2026-11-28", "[0.2.0] - 2026-11-28", "0.2.0, 28.11.2026"]
)
def test_a_heading_of_another_form_is_named(heading: str) -> None:
    assert found(f"## {heading}\n- New.\n{BELOW}") == [
        (
            f"CHANGELOG.md:1: '## {heading}' is no heading of a release; right is a version and a date, "
            "such as '## 0.2.0, 2026-11-28'"
        ),
        (
            "CHANGELOG.md: there is no section of 0.2.0; right is the heading '## 0.2.0, 2026-11-28' "
            "above its changes"
        ),
    ]
