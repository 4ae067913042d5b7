"""The part of the repository that apt reads: packages, an index for each architecture, the signed Release.

There is no Valid-Until: a copy on a medium is read years later. Who serves it says by TLS how fresh it is.
"""

import hashlib
import lzma
import shutil
from pathlib import Path
from typing import Final

from release.commands import run
from release.keys import Keys

FOLDER: Final = "apt"
POOL: Final = "pool/main/n/nodeagent"
_SUITE: Final = "dists/stable"
_ARCHITECTURES: Final = ("amd64", "arm64")
_RELEASE: Final = {
    "Origin": "nodeagent",
    "Label": "nodeagent",
    "Suite": "stable",
    "Codename": "stable",
    "Architectures": " ".join(_ARCHITECTURES),
    "Components": "main",
    "Description": "fault detection for AI nodes",
    "Acquire-By-Hash": "yes",
}
_FTPARCHIVE: Final = (
    "apt-ftparchive",
    # One digest: under the strongest in the Release apt asks for an index.
    *(f"-oAPT::FTPArchive::{digest}=false" for digest in ("MD5", "SHA1", "SHA512")),
)


def index(repository: Path, keys: Keys) -> None:
    """Writes the metadata of all packages in the pool, and signs it."""
    suite = repository / _SUITE
    for architecture in _ARCHITECTURES:
        folder = suite / f"main/binary-{architecture}"
        listed = run(*_FTPARCHIVE, f"--arch={architecture}", "packages", "pool", folder=repository).encode()
        _write(folder / "Packages", listed)
        _write(folder / "Packages.xz", lzma.compress(listed))
    for name in ("Release", "Release.gpg", "InRelease"):
        (suite / name).unlink(missing_ok=True)
    fields = [f"-oAPT::FTPArchive::Release::{name}={value}" for name, value in _RELEASE.items()]
    release = suite / "Release"
    release.write_text(run(*_FTPARCHIVE, *fields, "release", suite))
    keys.sign_inside(release, suite / "InRelease")
    keys.sign_beside(release, suite / "Release.gpg")


def _write(index: Path, content: bytes) -> None:
    """Under its digest too. Earlier ones stay there: who has read an earlier Release gets what it names."""
    by_digest = index.parent / "by-hash/SHA256" / hashlib.sha256(content).hexdigest()
    by_digest.parent.mkdir(parents=True, exist_ok=True)
    index.unlink(missing_ok=True)
    index.write_bytes(content)
    shutil.copyfile(index, by_digest)
