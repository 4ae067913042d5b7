"""The configuration of nfpm for one format, made of the one for all, which says nothing twice.

rpm wants each document and licence marked as such (``rpm --nodocs``, ``rpm -qL``); what nfpm packs with such a
mark it leaves out of other formats, so the marks are set here.
"""

from pathlib import PurePosixPath
from typing import Any, Final

import yaml

_DOCUMENTS: Final = ("/usr/share/doc/", "/usr/share/man/")
_LICENSES: Final = frozenset({"copyright", "LICENSE"})
_RPM: Final = "rpm"


def of_format(text: str, packager: str, license_: str, changelog: str) -> str:
    """``license_`` is the SPDX expression of the whole, ``changelog`` the path of nfpm's form of it."""
    given: dict[str, Any] = yaml.safe_load(text)
    if packager == _RPM:
        given["license"] = license_
        given["changelog"] = changelog  # for a deb nfpm gives it the name that one with a revision has
        for each in given["contents"]:
            if (mark := _mark(each)) is not None:
                each["type"] = mark
    return yaml.safe_dump(given, sort_keys=False, allow_unicode=True)


def _mark(entry: dict[str, Any]) -> str | None:
    place = entry["dst"]
    if entry.get("type") is not None or not place.startswith(_DOCUMENTS):
        return None
    return "license" if PurePosixPath(place).name in _LICENSES else "doc"
