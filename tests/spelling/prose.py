"""What people read, without code: documents, help, tables, and comments of what sites configure."""

import re
from collections.abc import Iterator
from typing import Final

import click
from markdown_it import MarkdownIt

from nodeagent.cli.main import main
from nodeagent.core.catalog.settings import Settings
from nodeagent.tables.load import load_catalog
from tests.documents import DOCUMENTS, ROOT, name_of

_PARSER: Final = MarkdownIt("commonmark").enable("table")
_CHANGES: Final = ROOT / "CHANGELOG.md"
_CODE: Final = re.compile(r"`[^`]*`|\"[^\"]*\"|\([^)]*\)\w|https?:\S+")
_COMMENT: Final = re.compile(r"^ *(?://|#(?! \w+ = )) (.*)$", flags=re.MULTILINE)
"""Not a key with its default, which the configuration shows as a comment."""
_PLAIN: Final = re.compile(r"[A-Z]?[a-z]+(?:'[a-z]+)?")
"""A word of prose. Names in capitals, with digits or with points in them are no words."""


def texts() -> Iterator[tuple[str, str]]:
    """Each with the place that it is in. Of the changes only those that are not released."""
    for document in DOCUMENTS:
        source = document.read_text(encoding="utf-8")
        if document == _CHANGES:
            source = source.partition("\n## Unreleased\n")[2].partition("\n## ")[0]
        yield name_of(document), prose_of(source)
    yield from _help(click.Context(main, info_name="nodeagent"))
    for path in (ROOT / "packaging/nodeagent.toml", *sorted(ROOT.glob("proto/**/*.proto"))):
        yield name_of(path), _CODE.sub(" ", " ".join(_COMMENT.findall(path.read_text(encoding="utf-8"))))
    for row in load_catalog([ROOT / "fault_codes"], Settings()).catalog.rows.values():
        yield row.file, _CODE.sub(" ", " ".join((row.name, row.description, row.action, row.level_reason)))


def prose_of(markdown: str) -> str:
    """What a reader sees, without code in blocks and within lines."""
    tokens = (token for token in _PARSER.parse(markdown) if token.type == "inline")
    children = (child for token in tokens for child in token.children or ())
    return " ".join(child.content if child.type == "text" else "" for child in children)


def _help(context: click.Context) -> Iterator[tuple[str, str]]:
    command = context.command
    yield f"help of {context.command_path}", _CODE.sub(" ", command.help or "")
    for option in command.params:
        if isinstance(option, click.Option):
            yield f"help of {context.command_path} {option.opts[0]}", _CODE.sub(" ", option.help or "")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (inner := command.get_command(context, name)) is not None:
                yield from _help(click.Context(inner, info_name=name, parent=context))


def words_of(text: str) -> Iterator[str]:
    """Those of prose, each as it is written; those of two letters are left out."""
    for token in re.split(r"[\s–—-]+", text):
        word = token.strip(".,;:!?()[]\"'*…").removesuffix("'s").removesuffix("’s")
        if len(word) > 2 and _PLAIN.fullmatch(word):
            yield word
