"""The package as it is shipped, built once for all tests that install it."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="session")
def package() -> Path:
    """The Debian package of the working tree as it is now."""
    built = subprocess.run(
        [ROOT / "packaging/build.sh"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    return max((ROOT / "dist").glob("nodeagent_*.deb"), key=lambda path: path.stat().st_mtime_ns)
