"""Puts a document of docs/, or a section of it, into a manual page. It keeps the words and their order."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from man.roff import Page, bold, italic, plain

_PARSER: Final = MarkdownIt("commonmark").enable("table")


def tokens(document: Path) -> list[Token]:
    return _PARSER.parse(document.read_text())


def section(document: Path, title: str) -> list[Token]:
    """What stands below that heading, without what stands before and behind. Raises LookupError."""
    found: list[Token] = []
    level = ""
    before: Token | None = None
    for token in tokens(document):
        if token.type == "heading_open" and level and token.tag <= level:
            break
        if level:
            found.append(token)
        elif before is not None and before.type == "heading_open" and token.content == title:
            level = before.tag
        before = token
    if not found:
        raise LookupError(f"{document}: there is no section {title!r}")
    return found[1:]  # without the end of the heading


def table(document: Path, first_column: str) -> list[tuple[str, ...]]:
    """The rows of the first table with such a column, each cell as roff. Raises LookupError."""
    for head, *rows in _tables(tokens(document)):
        if head[0] == first_column:
            return rows
    raise LookupError(f"{document}: no table has a first column {first_column!r}")


def _tables(of: Sequence[Token]) -> Iterator[list[tuple[str, ...]]]:
    rows: list[tuple[str, ...]] = []
    cells: list[str] = []
    for position, token in enumerate(of):
        match token.type:
            case "table_open":
                rows = []
            case "th_open" | "td_open":
                cells.append(inline(of[position + 1]))
            case "tr_close":
                rows.append(tuple(cells))
                cells = []
            case "table_close":
                yield rows


def inline(token: Token) -> str:
    """Text within a line: code and emphasis in bold; behind a link, the document that it leads to."""
    parts: list[str] = []
    targets: list[str] = []
    is_strong = False
    for child in token.children or ():
        match child.type:
            case "text":
                parts.append(bold(child.content) if is_strong else _spaced(child.content))
            case "code_inline":
                parts.append(bold(child.content))
            case "softbreak" | "hardbreak":
                parts.append(" ")
            case "strong_open" | "strong_close":
                is_strong = child.type == "strong_open"
            case "link_open":
                targets.append(str(child.attrGet("href") or ""))
            case "link_close":
                target = targets.pop()
                if target.startswith("https://"):
                    parts.append(f" ({italic(target)})")
                elif (document := target.partition("#")[0]).endswith(".md"):
                    parts.append(f" ({italic(Path(document).name)})")
    return "".join(parts)


def _spaced(text: str) -> str:
    """Prose with the blanks at its ends, which part it from what stands beside it."""
    lead = " " if text[:1].isspace() else ""
    trail = " " if text[-1:].isspace() and text.strip() else ""
    return f"{lead}{plain(text)}{trail}"


def put(page: Page, given: Sequence[Token], *, headings: bool = True) -> None:
    """All of it but the title. With ``headings``, the sections are those of the page."""
    marks: list[str] = []
    starts_item = False
    position = 0
    while position < len(given):
        token = given[position]
        following = given[position + 1] if position + 1 < len(given) else token
        match token.type:
            case "heading_open":
                if token.tag == "h2" and headings:
                    page.heading(following.content.replace("`", "").upper())
                elif token.tag != "h1":
                    page.subheading(following.content.replace("`", ""))
                position += 1
            case "ordered_list_open" | "bullet_list_open":
                if marks:
                    page.begin_within()
                marks.append("1" if token.type.startswith("ordered") else "")
            case "ordered_list_close" | "bullet_list_close":
                marks.pop()
                if marks:
                    page.end_within()
            case "list_item_open":
                starts_item = True
            case "list_item_close":
                if marks[-1]:
                    marks[-1] = str(int(marks[-1]) + 1)
            case "inline":
                if starts_item:
                    page.item(f"{marks[-1]}." if marks[-1] else "", inline(token))
                    starts_item = False
                else:
                    page.paragraph(inline(token))
            case "fence":
                page.example(token.content)
            case "table_open":
                end = next(at for at in range(position, len(given)) if given[at].type == "table_close")
                _put_table(page, given[position : end + 1])
                position = end
        position += 1


def _put_table(page: Page, given: Sequence[Token]) -> None:
    """Each row as a definition of its first cell, its other cells under their columns' names."""
    ((head, *rows),) = _tables(given)
    for first, *others in rows:
        named = zip(head[1:], others, strict=True)
        only = len(others) == 1
        page.tagged(first, "; ".join(cell if only or not name else f"{name}: {cell}" for name, cell in named))
