"""The sources that the interpreter is built from, as ``../interpreter/sources.sha256`` names them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).resolve().parents[1] / "interpreter/sources.sha256"
_LINE: Final = re.compile(r"(?P<digest>[0-9a-f]{64})  (?P<path>pool/\S+/(?P<name>[^_/]+)_(?P<version>[^/]+))")
_ORIGINAL: Final = re.compile(r"\.orig\.tar\.\w+$")
_DEBIAN: Final = re.compile(r"\.debian\.tar\.\w+$")
INTERPRETER: Final = "python3.13"


@dataclass(frozen=True, slots=True)
class Source:
    """A source package of Debian. ``digests``: name of a file -> its SHA-256."""

    name: str
    version: str
    digests: Mapping[str, str]


def read(file: Path = FILE) -> Mapping[str, Source]:
    """By name. Raises ValueError for a line that is not understood, and a package without both its files."""
    digests: dict[str, dict[str, str]] = {}
    versions: dict[str, str] = {}
    for number, line in enumerate(file.read_text().splitlines(), 1):
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"{file}:{number}: not a digest and a path below pool/: {line!r}")
        digests.setdefault(found["name"], {})[Path(found["path"]).name] = found["digest"]
        if _DEBIAN.search(found["version"]):
            versions[found["name"]] = _DEBIAN.sub("", found["version"])
        elif not _ORIGINAL.search(found["version"]):
            raise ValueError(f"{file}:{number}: neither .orig.tar nor .debian.tar: {line!r}")
    if lacking := sorted(name for name, each in digests.items() if name not in versions or len(each) != 2):
        raise ValueError(f"{file}: {', '.join(lacking)}: a source has one .orig.tar and one .debian.tar")
    return {name: Source(name, versions[name], digests[name]) for name in sorted(digests)}
