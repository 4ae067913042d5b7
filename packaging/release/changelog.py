"""What CHANGELOG.md has to say before a version is released. Its text in, what is wrong with it out."""

import datetime
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

NAME: Final = "CHANGELOG.md"
_UNRELEASED: Final = "Unreleased"
_RELEASED: Final = re.compile(r"(?P<version>\d+\.\d+\.\d+), (?P<date>\d{4}-\d{2}-\d{2})")


@dataclass(frozen=True)
class Section:
    """What stands under one heading of the second level."""

    line: int
    """Of the heading, from 1."""
    title: str
    filled: list[int]
    """The lines below it that say something."""

    @property
    def version(self) -> str:
        """Empty where the heading is not that of a release."""
        found = _RELEASED.fullmatch(self.title)
        return found["version"] if found else ""


def problems(text: str, version: str, today: datetime.date) -> Iterator[str]:
    """Why this is not the changelog of that version, ready to be released today; one line each."""
    sections = _sections(text)
    right = f"'## {version}, {today}'"
    for section in sections:
        if section.title == _UNRELEASED:
            if section.filled:
                yield (
                    f"{NAME}:{section.line}: changes stand under {_UNRELEASED}, in line {section.filled[0]}; "
                    f"right is the heading {right} above them"
                )
        elif not section.version:
            yield (
                f"{NAME}:{section.line}: '## {section.title}' is no heading of a release; "
                f"right is a version and a date, such as {right}"
            )
    released = [section for section in sections if section.version]
    own = [section for section in released if section.version == version]
    if not own:
        yield f"{NAME}: there is no section of {version}; right is the heading {right} above its changes"
    for again in own[1:]:
        yield f"{NAME}:{again.line}: {version} has a section in line {own[0].line} already; right is one"
    for section in own[:1]:
        yield from _problems_of_own(section, released, today)


def _problems_of_own(own: Section, released: Sequence[Section], today: datetime.date) -> Iterator[str]:
    place = f"{NAME}:{own.line}:"
    if own is not released[0]:
        yield (
            f"{place} {own.version} stands below {released[0].version} of line {released[0].line}; "
            "right is the newest version first, and that it is the one to be released"
        )
    if not own.filled:
        yield f"{place} nothing stands under {own.version}; right is what changed in it"
    date = _date(own)
    if date is None or date > today:
        what = "there is no such day" if date is None else f"that day is to come, today is {today}"
        yield f"{place} '## {own.title}': {what}; right is '## {own.version}, {today}'"
        return
    below = released[released.index(own) + 1 :][:1]
    for earlier in below:
        before = _date(earlier)
        if before is not None and before > date:
            yield (
                f"{place} {own.version} is of {date}, and {earlier.version} of {before}; "
                f"right is '## {own.version}, {today}'"
            )


def _date(section: Section) -> datetime.date | None:
    found = _RELEASED.fullmatch(section.title)
    try:
        return datetime.date.fromisoformat(found["date"]) if found else None
    except ValueError:
        return None


def _sections(text: str) -> list[Section]:
    sections: list[Section] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("## "):
            sections.append(Section(number, line[3:].strip(), []))
        elif sections and line.strip() and not line.startswith("#"):
            sections[-1].filled.append(number)
    return sections
