"""The fields of each command that docs/commands.md lists."""

import re
from typing import Final

from tests.cli.conftest import ROOT

ROW: Final = re.compile(r"^\| (`[a-z `,]+`) \| `([a-z_ ]+)` \|$", flags=re.MULTILINE)


def documented() -> dict[str, set[str]]:
    rows = ROW.findall((ROOT / "docs" / "commands.md").read_text())
    return {
        command: set(fields.split())
        for commands, fields in rows
        for command in re.findall(r"`([^`]+)`", commands)
    }
