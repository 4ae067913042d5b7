"""The package as it is laid out on a node, by packaging/nfpm.yaml: for tests that build no package."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from tests.documents import ROOT

PACKAGES: Final = ROOT / "packaging/nfpm.yaml"


def lay_out(root: Path, packager: str) -> None:
    """What the package of that format holds of the sources, below ``root``; not what a build makes."""
    for place, source in contents(packager):
        target = root / place.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source is None:
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.symlink_to(source)


def contents(packager: str) -> Iterator[tuple[Path, Path | str | None]]:
    """Each place with its source: a file of the sources, where a link leads to, or None for a folder."""
    for each in yaml.safe_load(PACKAGES.read_text())["contents"]:
        if each.get("packager", packager) != packager or each.get("src", "").startswith("build/"):
            continue
        if each.get("type") == "dir":
            yield Path(each["dst"]), None
        elif each.get("type") == "symlink":
            yield Path(each["dst"]), each["src"]
        else:
            yield from _files(each)


def _files(entry: dict[str, Any]) -> Iterator[tuple[Path, Path]]:
    is_folder = entry["dst"].endswith("/")
    for source in sorted(ROOT.glob(entry["src"])):
        yield Path(entry["dst"], source.name if is_folder else ""), source
