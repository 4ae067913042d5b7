"""The copyright file of a package in Debian's form for machines, of the same rows as the bill of materials.

Source: Debian policy 12.5, and its copyright format 1.0. A licence that Debian has in its common-licenses is
named by its file there, and by where the package has its text for other systems; any other stands in full.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from describe.components import Row
from describe.inventory import Inventory, Shipped

TEXTS: Final = Path(__file__).with_name("licenses")
_OF_THE_INTERPRETER: Final = re.compile(r".*/python[\d.]+/LICENSE\.txt")
_HEAD: Final = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: nodeagent
Comment: {comment}
"""
_COMMENT: Final = (
    "What the package carries of others is listed with its versions in sbom.cdx.json beside this file."
    " A file that several have a part in is under the licences of all of them."
)
_FULL_TEXTS: Final = {
    "Apache-2.0": "LICENSE beside this file",
    "LGPL-2.1-or-later": "systemd_python-*.dist-info/licenses/LICENSE.txt below /usr/lib/nodeagent/python",
    "MPL-2.0": "grpcio-*.dist-info/licenses/LICENSE below /usr/lib/nodeagent/python",
}
"""Where the package itself has the text, for systems other than Debian's."""


def written(inventory: Inventory) -> str:
    paragraphs = [_HEAD.format(comment=_wrapped(_COMMENT)), _files(["*"], [inventory.own])]
    whole = [each for each in inventory.shipped if not each.is_part]
    # The last that fits a file counts: first the folders, then single files in them.
    paragraphs += [_files(each.files, [each.row]) for each in sorted(whole, key=_order)]
    paragraphs += _of_shared_objects(inventory)
    for name in _licenses(inventory):
        paragraphs.append(f"License: {_short(name)}\n{_indented(_text(name, inventory))}\n")
    return "\n".join(paragraphs)


def expression(inventory: Inventory) -> str:
    """All licences of the package, in SPDX."""
    return " AND ".join(_licenses(inventory))


def _licenses(inventory: Inventory) -> list[str]:
    """An exception belongs to its licence."""
    rows = [inventory.own, *(each.row for each in inventory.shipped)]
    return sorted({name for row in rows for name in row.shipped_under.split(" AND ")})


def _order(shipped: Shipped) -> tuple[bool, str]:
    return not shipped.files[0].endswith("/python/*"), shipped.name


def _files(patterns: Iterable[str], rows: Sequence[Row], said: str = "") -> str:
    lines = ["Files: " + "\n ".join(each.removeprefix("/") for each in patterns)]
    holders = list(dict.fromkeys(holder for row in rows for holder in row.copyright))
    lines.append("Copyright: " + "\n ".join(holders))
    terms = sorted({term for row in rows for term in row.shipped_under.split(" AND ")})
    lines.append("License: " + " and ".join(map(_short, terms)))
    if comment := " ".join(filter(None, [said, *(row.comment for row in rows)])):
        lines.append(f"Comment: {_wrapped(' '.join(comment.split()))}")
    return "\n".join(lines) + "\n"


def _short(name: str) -> str:
    """An exception in the words of Debian's form."""
    license_, _, exception = name.partition(" WITH ")
    return f"{license_} with {exception} exception" if exception else license_


def _of_shared_objects(inventory: Inventory) -> Iterator[str]:
    """Files with the parts of several, those with the same ones together."""
    parts: dict[str, list[Shipped]] = {}
    for each in inventory.shipped:
        for place in each.objects:
            parts.setdefault(place, []).append(each)
    alike: dict[tuple[str, ...], list[str]] = {}
    for place, several in parts.items():
        if any(each.is_part for each in several):
            alike.setdefault(tuple(_named(each) for each in several), []).append(place)
    for named, places in sorted(alike.items(), key=lambda each: each[1]):
        several = parts[places[0]]
        rows = [each.row for each in several]
        if all(each.is_part for each in several):
            rows.insert(0, inventory.own)
        yield _files(sorted(places), rows, f"With {', '.join(named)}.")


def _named(shipped: Shipped) -> str:
    return f"{shipped.name} {shipped.version}"


def _text(name: str, inventory: Inventory) -> str:
    common = inventory.common_licenses.get(name)
    if common is None:
        return _full_text(name, inventory.files)
    where = f"On Debian systems the text of this licence is in /usr/share/common-licenses/{common}."
    license_, _, exception = name.partition(" WITH ")
    if license_ in _FULL_TEXTS:
        where += f" On any other it is in {_FULL_TEXTS[license_]}."
    if exception:
        where += " With the exception that its compiled form may be linked into other programs without limit."
    return _wrapped(where).replace("\n ", "\n")


def _full_text(name: str, files: Mapping[str, Path]) -> str:
    """Raises FileNotFoundError."""
    if name == "PSF-2.0":  # the interpreter brings it
        return next(path for place, path in files.items() if _OF_THE_INTERPRETER.fullmatch(place)).read_text()
    return (TEXTS / f"{name}.txt").read_text()


def _indented(text: str) -> str:
    return "\n".join(f" {line}" if line.strip() else " ." for line in text.strip("\n").splitlines())


def _wrapped(text: str) -> str:
    return "\n ".join(textwrap.wrap(text, 100, break_on_hyphens=False))
