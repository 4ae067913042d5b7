"""The references of the configuration and of the tables: each key, its default and what it must be.

What a key must be comes from the forms that read the files, and the texts from the shipped nodeagent.toml.
"""

import itertools
from collections.abc import Sequence
from typing import Final

from man.forms import OF_CONFIGURATION, OF_TABLES
from man.from_configuration import INDENT, Group, left_out, sections
from nodeagent.toml.fields import requirements
from website.documents import ROOT
from website.markdown import block, code, prose, table

_OF_CONFIGURATION: Final = """# All keys of the configuration

[Configuration](../docs/configuration.md) describes where the file is, and how drop-ins change it. Each key
may be left out; then the value that is shown is in force.
"""
_OF_TABLES: Final = """# All keys of the tables

[Fault tables](../docs/tables.md) describes what rows and rules do, with examples.
"""


def configuration_page() -> str:
    """A section for each of the file, with a heading for each key."""
    parts = [_OF_CONFIGURATION]
    for name, groups in sections((ROOT / "packaging" / "nodeagent.toml").read_text(encoding="utf-8")):
        right = requirements(OF_CONFIGURATION[name])
        parts.append(f"## [{name}]\n")
        parts += (_group(group, right) for group in groups)
        if missing := left_out(groups, right):
            parts.append(table(("key", "must be"), [(code(key), prose(right[key])) for key in missing]))
    return "\n".join(parts)


def _group(group: Group, right: dict[str, str]) -> str:
    """Keys that the same text is about share a heading."""
    lines = []
    if group.keys:
        lines.append(f"### {', '.join(code(key) for key, _ in group.keys)}\n")
        lines += [f"- {code(f'{key} = {default}')}: {prose(right[key])}" for key, default in group.keys]
        lines.append("")
    return "\n".join([*lines, _text(group.text)])


def _text(lines: Sequence[str]) -> str:
    """Lines that are indented are shown as they are."""
    parts = []
    for is_shown, some in itertools.groupby(lines, lambda line: line.startswith(INDENT)):
        text = "\n".join(line.removeprefix(INDENT) for line in some)
        parts.append(block(text) if is_shown else f"{prose(text)}\n")
    return "\n".join(parts)


def tables_page() -> str:
    """A section for each form of the tables."""
    parts = [_OF_TABLES]
    for title, form in OF_TABLES.items():
        rows = [(code(key), prose(right)) for key, right in requirements(form).items()]
        parts.append(f"## {title}\n\n{table(('key', 'must be'), rows)}")
    return "\n".join(parts)
