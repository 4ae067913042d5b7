"""The configuration of nfpm for one format, made of the one for all, which says nothing twice.

rpm wants each document and licence marked as such (``rpm --nodocs``, ``rpm -qL``). What has such a mark nfpm
leaves out of other formats, and takes no pattern for it: so the marks are set here, and each file is named.
"""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
_DOCUMENTS: Final = ("/usr/share/doc/", "/usr/share/man/")
_LICENSES: Final = frozenset({"copyright", "LICENSE"})
_RPM: Final = "rpm"


def of_format(text: str, packager: str, license_: str, changelog: str, compression: str = "") -> str:
    """``license_`` is the SPDX expression of the whole, ``changelog`` the path of nfpm's form of it,
    ``compression`` what to use in place of the one in ``text``.

    Variables are those of the environment. Raises FileNotFoundError for a document that is not there.
    """
    given: dict[str, Any] = yaml.safe_load(text)
    if compression:
        given[packager]["compression"] = compression
    if packager == _RPM:
        given["license"] = license_
        given["changelog"] = changelog  # for a deb nfpm gives it the name that one with a revision has
        given["contents"] = [each for entry in given["contents"] for each in _marked(entry)]
    return yaml.safe_dump(given, sort_keys=False, allow_unicode=True)


def _marked(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    place = entry["dst"]
    if "type" in entry or not place.startswith(_DOCUMENTS):
        yield entry
        return
    source = os.path.expandvars(entry["src"])
    files = sorted(ROOT.glob(source))
    if not files:
        raise FileNotFoundError(f"{place}: no file is like {source}")
    for file in files:
        target = f"{place}{file.name}" if place.endswith("/") else place
        mark = "license" if PurePosixPath(target).name in _LICENSES else "doc"
        yield {**entry, "src": str(file), "dst": target, "type": mark}
