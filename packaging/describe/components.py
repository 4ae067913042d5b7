"""The rows of ``components.toml``: licences and holders of what the packages carry. It reads no package."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

FILE: Final = Path(__file__).with_name("components.toml")


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``license`` is an SPDX expression. ``taken``: the one of its alternatives under which it is shipped."""

    license: str
    copyright: tuple[str, ...]
    taken: str | None = None
    comment: str | None = None
    reviewed: str | None = None
    """The version that this, and the rows ``inside`` of it, speak of."""

    @property
    def shipped_under(self) -> str:
        return self.taken or self.license


class SourceRow(Row, frozen=True, kw_only=True):
    title: str
    files: tuple[str, ...]


class InsideRow(Row, frozen=True, kw_only=True):
    """What another one brings along. ``contains`` are words that each of its files must have."""

    name: str
    of: str
    files: tuple[str, ...]
    version: str | None = None
    contains: str | None = None
    purl: str | None = None


class CompilerRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    reviewed: str


class Components(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    common_licenses: Mapping[str, str]
    """SPDX expression -> the file's name in Debian's /usr/share/common-licenses."""
    own: Row
    distributions: Mapping[str, Row]
    sources: Mapping[str, SourceRow]
    inside: tuple[InsideRow, ...]
    compiler: CompilerRow


def read(file: Path = FILE) -> Components:
    """Raises ValueError, which names file and key."""
    try:
        found = msgspec.toml.decode(file.read_bytes(), type=Components)
    except msgspec.MsgspecError as error:
        raise ValueError(f"{file}: {error}") from error
    holders = {*found.distributions, *found.sources, found.compiler.name}
    for row in found.inside:
        if row.of not in holders:
            raise ValueError(f"{file}: inside {row.name}: of = {row.of!r} has no row of its own")
        holder = found.distributions.get(row.of) or found.sources.get(row.of)
        if holder is not None and holder.reviewed is None:
            raise ValueError(f"{file}: {row.of}: reviewed is missing; {row.name} is inside of it")
    return found
