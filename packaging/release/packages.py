"""The files of a release: built anew, and all of them."""

import subprocess
from pathlib import Path
from typing import Final

from release.commands import Refused

_FILES: Final = (
    "nodeagent_{version}_amd64.deb",
    "nodeagent_{version}_arm64.deb",
    "nodeagent-emulator_{version}_amd64.deb",
    "nodeagent-emulator_{version}_arm64.deb",
    "nodeagent-{version}-1.x86_64.rpm",
    "nodeagent-{version}-1.aarch64.rpm",
    "nodeagent-emulator-{version}-1.x86_64.rpm",
    "nodeagent-emulator-{version}-1.aarch64.rpm",
    "nodeagent_client-{version}-py3-none-any.whl",
    "nodeagent-job-{version}.pyz",
)
"""What a release has at least. What else the build names after the version is published with it.

Images for containers are not: they belong to registries.
"""


def build(root: Path, version: str) -> list[Path]:
    """Lets packaging/build.sh build into ``dist``, and returns what it made of this version.

    What an earlier build left of it is deleted first. Raises Refused where the build fails or lacks a file.
    """
    made = f"*[_-]{version}[-_.]*"
    for left in _files(root / "dist", made):
        left.unlink()
    status = subprocess.run([root / "packaging/build.sh", "--all"], cwd=root, check=False).returncode
    if status:
        raise Refused(f"packaging/build.sh --all ended with {status}")
    built = {path.name: path for path in _files(root / "dist", made)}
    missing = [name for form in _FILES if (name := form.format(version=version)) not in built]
    if missing:
        raise Refused(f"packaging/build.sh --all has not built {', '.join(missing)}")
    return sorted(built.values())


def _files(folder: Path, made: str) -> list[Path]:
    return [path for path in folder.glob(made) if path.is_file() and not path.name.endswith(".oci.tar")]
