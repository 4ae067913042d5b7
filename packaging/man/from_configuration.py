"""Puts the shipped nodeagent.toml into a manual page: each key with its default and what is said of it.

What may stand there comes from the forms that read the file, so that the page cannot be wrong about it.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from man.forms import OF_CONFIGURATION
from man.roff import Page, bold, plain, prose
from nodeagent.toml.fields import requirements

_KEY: Final = re.compile(r"# (\w+) = (.*)")
INDENT: Final = "    "
_SECTION: Final = re.compile(r"\[([\w.]+)\]")


@dataclass
class Group:
    """Some keys, and what is said of them together: before them, or behind them in the same paragraph."""

    keys: list[tuple[str, str]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)


def put(page: Page, shipped: str) -> None:
    """A heading for each section; keys that no text is about stand by themselves."""
    for name, groups in sections(shipped):
        page.heading(f"[{name}]")
        right = requirements(OF_CONFIGURATION[name])
        for group in groups:
            for key, default in group.keys:
                page.tagged(bold(f"{key} = {default}"), plain(f"It is {right[key]}."))
            if group.keys and group.text:
                page.begin_within()
                _put_text(page, group.text)
                page.end_within()
            else:
                _put_text(page, group.text)
        for key in left_out(groups, right):
            page.tagged(bold(key), plain(f"It is {right[key]}."))


def left_out(groups: Sequence[Group], keys: Iterable[str]) -> list[str]:
    """Keys that the section takes and the shipped file does not show, such as those that all sources have."""
    shown = {key for group in groups for key, _ in group.keys}
    told = " ".join(line for group in groups for line in group.text)
    return [key for key in keys if key not in shown and not re.search(rf"\b{key}\b", told)]


def _put_text(page: Page, lines: list[str]) -> None:
    """Lines that are indented are shown as they are."""
    for is_shown, some in itertools.groupby(lines, lambda line: line.startswith(INDENT)):
        if is_shown:
            page.example("\n".join(line.removeprefix(INDENT) for line in some))
        else:
            page.paragraph(prose(" ".join(some)))


def sections(shipped: str) -> Iterator[tuple[str, list[Group]]]:
    """Each with its groups. The comment right above a section is its own."""
    name, groups, paragraph = "", list[Group](), list[str]()
    for line in (*shipped.splitlines(), "", "[end]"):
        if (found := _SECTION.fullmatch(line)) is not None:
            if name:
                yield name, groups
            name, groups, paragraph = found[1], _groups(paragraph), []
        elif line:
            paragraph.append(line)
        else:
            groups += _groups(paragraph)
            paragraph = []


def _groups(paragraph: list[str]) -> list[Group]:
    """Text is about the keys that follow it; at the end of a paragraph, about those before it."""
    groups = list[Group]()
    for line in paragraph:
        key = _KEY.fullmatch(line)
        if not groups or (key is None and groups[-1].keys):
            groups.append(Group())
        if key is not None:
            groups[-1].keys.append((key[1], key[2]))
        else:
            groups[-1].text.append(line.removeprefix("#").removeprefix(" "))
    if len(groups) > 1 and not groups[-1].keys and not groups[-2].text:
        last = groups.pop()
        groups[-1].text = last.text
    return groups
