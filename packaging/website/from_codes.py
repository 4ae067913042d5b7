"""The shipped fault codes: a page for each table, so that the site's search finds a code."""

import itertools
from collections.abc import Mapping
from typing import Final

from nodeagent.core.catalog.catalog import Row
from nodeagent.core.catalog.settings import Settings
from nodeagent.tables.load import load_catalog
from website.documents import ROOT
from website.markdown import code, prose, table

_HEAD: Final = ("code", "name", "level", "what to do")


def pages() -> Mapping[str, str]:
    """By file name: one for each shipped table that has rows."""
    rows = load_catalog([ROOT / "fault_codes"], Settings()).catalog.rows.values()
    by_file = itertools.groupby(sorted(rows, key=_file), _file)  # each in the order of its table
    return {f"{name}.md": _page(name, list(some)) for name, some in by_file}


def _file(row: Row) -> str:
    """The name of its table, without the ending."""
    return row.file.rpartition("/")[2].partition(".")[0]


def _page(name: str, rows: list[Row]) -> str:
    vendors = ", ".join(sorted({row.vendor for row in rows}))
    kinds = ", ".join(sorted({str(row.kind) for row in rows}))
    lines = [
        (code(row.code), prose(row.name), prose(str(row.level)), prose(row.action or row.description))
        for row in rows
    ]
    return (
        f"# Codes: {name}\n\nOf `fault_codes/{name}.toml` (vendor {vendors}; kind {kinds}). `nodeagent"
        " explain CODE` shows more: how a code is handled, its rules, and the source of its level.\n\n"
        f"{table(_HEAD, lines)}"
    )
