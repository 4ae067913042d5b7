"""The contract of a device's attributes, as docs/attributes.md has it: which key of what, and its type."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from nodeagent.core.model import DeviceSeen, Kind
from tests.documents import ROOT

DOCUMENT: Final = ROOT / "docs" / "attributes.md"
ROW: Final = re.compile(
    r"^\| `(?P<key>[a-z_]+)` \| (?P<of>[^|]+) \| (?P<type>[^|]+) \| [^|]+ \|$", re.MULTILINE
)

PCI: Final = r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
TYPES: Final[Mapping[str, str]] = {
    "text": r"[ -~]{1,256}",
    "number": r"[0-9]+",
    "hexadecimal number": r"0x[0-9a-f]+",
    "PCI address": PCI,
    "PCI addresses": rf"{PCI}(,{PCI})*",
    "names": r"[^, ]+(,[^, ]+)*",
}
"""Of each type of the document, the form of its values; a type may also be a list of words."""

OF: Final[Mapping[tuple[Kind, str], str]] = {
    (Kind.CHIP, "ascend"): "NPU",
    (Kind.CHIP, "nvidia"): "GPU",
    (Kind.CHIP, ""): "unlisted chip",
    (Kind.LINK, "linux"): "port",
    (Kind.HOST, "linux"): "memory module",
    (Kind.INSTANCE, "nvidia"): "instance",
    (Kind.NODE, ""): "node",
}
"""What the document calls devices, by kind and vendor."""


@cache
def contract() -> Mapping[tuple[str, str], re.Pattern[str]]:
    """The form of a value, by what it is said of and its key."""
    rows = list(ROW.finditer(DOCUMENT.read_text()))
    return {
        (of.strip(), row["key"]): _form(row["type"].strip()) for row in rows for of in row["of"].split(",")
    }


def words_of(type_: str) -> list[str]:
    return re.findall(r"`([^`]+)`", type_)


def _form(type_: str) -> re.Pattern[str]:
    words = words_of(type_)
    return re.compile("|".join([*map(re.escape, words), TYPES["number"]]) if words else TYPES[type_])


def broken(kind: Kind, vendor: str, attributes: Mapping[str, str]) -> list[str]:
    """What is said otherwise than the document has it."""
    of = OF.get((kind, vendor), f"{kind} of {vendor}")
    found = []
    for key, value in attributes.items():
        form = contract().get((of, key))
        if form is None:
            found.append(f"{key} of {of}: it has no row in {DOCUMENT.name}")
        elif not form.fullmatch(value):
            found.append(f"{key} of {of}: {value!r} is not of its type in {DOCUMENT.name}")
    return found


def all_broken(inputs: Iterable[object]) -> list[str]:
    seen = [given for given in inputs if isinstance(given, DeviceSeen)]
    return [each for given in seen for each in broken(given.kind, given.vendor, given.attributes)]
