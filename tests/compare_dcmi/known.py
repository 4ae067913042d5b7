"""The differences that are known, each with its reason: the rows of ``known.toml``."""

import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from tests.compare_dcmi.compare import Difference

FILE = Path(__file__).parent / "known.toml"


@dataclass(slots=True, kw_only=True)
class Row:
    """Patterns of the shell's for what a difference is; ``used``: one was of this kind."""

    reason: str
    product: str = "*"
    state: str = "*"
    call: str = "*"
    vendor: str = "*"
    emulator: str = "*"
    used: bool = field(default=False, init=False)

    def fits(self, difference: Difference) -> bool:
        return all(
            fnmatchcase(getattr(difference, name), getattr(self, name).replace("[", "[[]"))
            for name in ("product", "state", "call", "vendor", "emulator")
        )


class Known:
    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def explain(self, difference: Difference) -> str:
        """The reason of the first row that fits, "" if none does."""
        for row in self._rows:
            if row.fits(difference):
                row.used = True
                return row.reason
        return ""

    def unused(self) -> list[str]:
        return [f"{row.product} {row.state} {row.call}: {row.reason}" for row in self._rows if not row.used]


def load(file: Path = FILE) -> Known:
    rows = tomllib.loads(file.read_text())["difference"]
    if any(not str(row.get("reason", "")).strip() for row in rows):
        raise ValueError(f"{file}: a row without a reason")
    return Known([Row(**row) for row in rows])
