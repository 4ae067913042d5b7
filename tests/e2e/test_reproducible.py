"""The same sources give the same packages: built again elsewhere, by somebody with other habits."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.documents import ROOT

pytestmark = [pytest.mark.release, pytest.mark.slow, pytest.mark.timeout(900)]

NOT_SOURCES = shutil.ignore_patterns(
    ".venv", "build", "dist", ".state", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"
)
OTHER_HABITS = {"TZ": "Asia/Shanghai", "LANG": "C.UTF-8", "PYTHONHASHSEED": "7"}


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what was built in a copy of the working tree."""
    copy = tmp_path_factory.mktemp("elsewhere") / "of-another-name"
    shutil.copytree(ROOT, copy, ignore=NOT_SOURCES, symlinks=True)
    (copy / ".venv").symlink_to(ROOT / ".venv")
    for path in (copy, *copy.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o077)
    built = subprocess.run(
        [copy / "packaging/build.sh", "deb", "rpm"], env={**os.environ, **OTHER_HABITS}, umask=0o077,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return copy / "dist"


def test_what_is_built_elsewhere_has_the_same_bytes(
    package: Path,
    emulator_package: Path,
    rpm_package: Path,
    rpm_emulator_package: Path,
    elsewhere: Path,
) -> None:
    built = {path.name: digest(path) for path in elsewhere.iterdir()}

    assert set(built) > {each.name for each in (package, emulator_package, rpm_package, rpm_emulator_package)}
    assert built == {name: digest(package.parent / name) for name in built}


def digest(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
