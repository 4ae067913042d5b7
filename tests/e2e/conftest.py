"""The package as it is shipped, built once for all tests that install it."""

import re
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
    return _newest("nodeagent")


@pytest.fixture(scope="session")
def emulator_package(package: Path) -> Path:
    """What the emulator needs beside ``package``; both are built together."""
    return _newest("nodeagent-emulator")


def _newest(name: str) -> Path:
    return max((ROOT / "dist").glob(f"{name}_*.deb"), key=lambda path: path.stat().st_mtime_ns)


@pytest.fixture(scope="session")
def next_package(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it might come next: a higher version, and another default configuration."""
    tree = tmp_path_factory.mktemp("next") / "tree"
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"^(Version: .*)$", r"\1+next", control.read_text(), flags=re.MULTILINE))
    with (tree / "etc/nodeagent/nodeagent.toml").open("a") as configuration:
        configuration.write("\n# The next version explains more here.\n")
    built = tree.with_name("nodeagent-next.deb")
    # What it is compressed with proves nothing, and takes longer than all else of a test.
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, built], check=True, capture_output=True
    )
    return built
