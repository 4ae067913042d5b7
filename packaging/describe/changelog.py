"""The changelog of a package, in Debian's form and in that of nfpm for rpm, from ``CHANGELOG.md`` alone.

Sources: deb-changelog(5) for Debian's; nfpm's documentation of ``changelog`` for the other.
"""

import datetime
import email.utils
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import yaml

UNRELEASED: Final = "Unreleased"
_VERSION: Final = re.compile(r"^## (?P<name>[^,\n]+?)(?:, (?P<date>\d{4}-\d\d-\d\d))?$", re.MULTILINE)
_KIND: Final = re.compile(r"^### (?P<name>.+)$", re.MULTILINE)
_ITEM: Final = re.compile(r"^- (.*?)(?=^- |^\s*$|\Z)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_WIDTH: Final = 78


@dataclass(frozen=True, slots=True)
class Entry:
    """A version. ``changes``: kind, such as "Added" -> what changed, as plain text."""

    version: str
    made_at: datetime.datetime
    changes: Mapping[str, Sequence[str]]


def read(text: str, version: str, made_at_s: int) -> list[Entry]:
    """The newest first. What is not released yet is of ``version``, made at that time. Raises ValueError."""
    _check_headings(text)
    found = []
    for head, body in _sections(_VERSION, text):
        changes = dict(_changes(body))
        if head["name"] == UNRELEASED:
            if changes:
                now = datetime.datetime.fromtimestamp(made_at_s, datetime.UTC)
                found.append(Entry(version, now, changes))
        elif head["date"] is None:
            raise ValueError(f"CHANGELOG.md: {head[0]!r} has no date: ## {head['name']}, YYYY-MM-DD")
        else:
            day = datetime.datetime.fromisoformat(head["date"]).replace(tzinfo=datetime.UTC)
            found.append(Entry(head["name"], day, changes))
    if not found or found[0].version != version:
        raise ValueError(f"CHANGELOG.md: it begins with no entry for {version}, released or not")
    if version in (each.version for each in found[1:]):
        raise ValueError(
            f"CHANGELOG.md: {version} is released, and there are changes since; "
            "right is a higher __version__ in nodeagent/__init__.py"
        )
    return found


def _check_headings(text: str) -> None:
    """What is no heading of a version would count as a part of the version above it."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("## ") and _VERSION.fullmatch(line) is None:
            raise ValueError(
                f"CHANGELOG.md:{number}: {line!r} is no version; right is '## VERSION, YYYY-MM-DD'"
            )


def _sections(heading: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Each heading with what stands below it, up to the next."""
    heads = list(heading.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    for head, end in zip(heads, ends, strict=False):
        yield head, text[head.end() : end]


def _changes(body: str) -> Iterator[tuple[str, Sequence[str]]]:
    for kind, section in _sections(_KIND, body):
        yield kind["name"], [_plain(each) for each in _ITEM.findall(section)]


def _plain(markdown: str) -> str:
    return _LINK.sub(r"\1", " ".join(markdown.split())).replace("**", "")


def for_debian(package: str, entries: Sequence[Entry], maintainer: str) -> str:
    return "\n".join(_debian_entry(package, each, maintainer) for each in entries)


def _debian_entry(package: str, entry: Entry, maintainer: str) -> str:
    lines = [f"{package} ({entry.version}) stable; urgency=medium", ""]
    for kind, changes in entry.changes.items():
        lines += [f"  [ {kind} ]"]
        for change in changes:
            lines += textwrap.wrap(
                change, _WIDTH, initial_indent="  * ", subsequent_indent="    ", break_on_hyphens=False
            )
        lines.append("")
    lines += [f" -- {maintainer}  {email.utils.format_datetime(entry.made_at)}", ""]
    return "\n".join(lines)


def for_nfpm(entries: Sequence[Entry], maintainer: str) -> str:
    told = [
        {
            "semver": f"{each.version}-1",  # with the release, as in the name of the rpm
            "date": each.made_at.isoformat(),
            "packager": maintainer,
            "changes": [
                {"note": f"{kind}: {change}"} for kind, changes in each.changes.items() for change in changes
            ],
        }
        for each in entries
    ]
    return yaml.safe_dump(told, sort_keys=False, allow_unicode=True, width=1_000)
