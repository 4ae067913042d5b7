"""The part of the repository that dnf reads: for each architecture its packages and their signed metadata."""

from pathlib import Path
from typing import Final

from release.commands import run
from release.keys import Keys

FOLDER: Final = "rpm"
ARCHITECTURES: Final = ("x86_64", "aarch64")
_GENERATIONS_KEPT: Final = 3
"""Of the metadata: who has read an earlier repomd.xml still gets what it names."""


def index(repository: Path, keys: Keys) -> None:
    """Writes the metadata of all packages, and signs it."""
    for architecture in ARCHITECTURES:
        folder = repository / architecture
        folder.mkdir(parents=True, exist_ok=True)
        kept = f"--retain-old-md={_GENERATIONS_KEPT}"
        run("createrepo_c", "--quiet", "--no-database", "--update", kept, folder)
        keys.sign_beside(folder / "repodata/repomd.xml")
