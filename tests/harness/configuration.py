"""The files of a daemon under test, in one folder, and the configuration that names them."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.computed_once import with_shipped_tables
from tests.sources import only_named

ROOT: Final = Path(__file__).parents[2]
SHIPPED_TABLES: Final = ROOT / "fault_codes"


class Files:
    """Of the daemon whose folder it is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.socket = folder / "n.sock"
        self.control_socket = folder / "c.sock"
        self.site = folder / "site"
        """The site's tables, above shipped ones."""
        self.base = folder / "base"
        """Those of the shipped tables that it has, where it does not have them all."""
        self.configuration = folder / "nodeagent.toml"
        self.log = folder / "log"

    def write_configuration(
        self,
        kernel_log: Path,
        tables: Sequence[Path],
        *,
        agent: Sequence[str] = (),
        metrics: str = "",
        kmsg: Sequence[str] = (),
        sections: Sequence[str] = (),
    ) -> None:
        """``agent`` and ``kmsg`` are further lines of these sections."""
        lines = (
            "[agent]",
            f'state_dir = "{self.state}"',
            f'socket = "{self.socket}"',
            f'control_socket = "{self.control_socket}"',
            f"tables = {json.dumps([str(each) for each in tables])}",
            *agent,
            "[metrics]",
            f'listen = "{metrics}"',
            "[drivers.kmsg]",
            f'path = "{kernel_log}"',
            *kmsg,
            *sections,
            "",
        )
        self.configuration.write_text(only_named("\n".join(lines)))

    def take_of_shipped(self, *names: str) -> None:
        """Copies these shipped tables to ``base``. All of them would take most of the time of a start."""
        self.base.mkdir(exist_ok=True)
        for name in names:
            (self.base / f"{name}.toml").write_bytes((SHIPPED_TABLES / f"{name}.toml").read_bytes())

    def environment(self, tables: Sequence[Path]) -> Mapping[str, str]:
        """With a cache of compiled patterns. It keeps few sets: only the shipped tables have a shared one."""
        if list(tables) == [SHIPPED_TABLES]:
            return with_shipped_tables()
        cache = self.folder / "cache"
        cache.mkdir(exist_ok=True)
        return {**os.environ, "CACHE_DIRECTORY": str(cache)}
