"""The package as it is shipped, built once for all tests that install it."""

import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nodeagent.store.layout import SCHEMA_VERSION
from tests.e2e.rpms import as_next_version
from tests.e2e.tree import laid_over

ROOT = Path(__file__).parent.parent.parent
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
"""What uname(2) calls a machine -> what Debian does."""


def _build(architecture: str, *, fast: bool = False) -> None:
    options = ["--fast"] if fast else []
    built = subprocess.run(
        [ROOT / "packaging/build.sh", "--arch", architecture, *options, "deb", "rpm"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr


@pytest.fixture(scope="session")
def package(request: pytest.FixtureRequest) -> Path:
    """The Debian package of the working tree as it is now. The rpm is built with it.

    It is compressed as it is shipped only for tests of a release: else that takes most of the build.
    """
    released = any(item.get_closest_marker("release") for item in request.session.items)
    _build(platform.machine(), fast=not released)
    return _newest(f"nodeagent_*_{DEBIAN[platform.machine()]}.deb")


@pytest.fixture(scope="session")
def emulator_package(package: Path) -> Path:
    """What the emulator needs beside ``package``; both are built together."""
    return _newest(f"nodeagent-emulator_*_{DEBIAN[platform.machine()]}.deb")


@pytest.fixture(scope="session")
def arm64_package() -> Path:
    """As ``package``, for arm64, whatever this machine is."""
    _build("aarch64")
    return _newest("nodeagent_*_arm64.deb")


@pytest.fixture(scope="session")
def arm64_emulator_package(arm64_package: Path) -> Path:
    return _newest("nodeagent-emulator_*_arm64.deb")


@pytest.fixture(scope="session")
def arm64_rpm_package(arm64_package: Path) -> Path:
    return _newest("nodeagent-[0-9]*.aarch64.rpm")


@pytest.fixture(scope="session")
def image(package: Path, arm64_package: Path) -> Path:
    """The container image of both packages, as a folder."""
    build_image()
    return _newest("nodeagent-*.oci")


def build_image() -> None:
    built = subprocess.run(
        [ROOT / "packaging/image/build.sh", "--all"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr


@pytest.fixture(scope="session")
def debian_package(package: Path, arm64_package: Path) -> Callable[[str], Path]:
    """Of an architecture, as Debian calls it."""
    return lambda architecture: _newest(f"nodeagent_*_{architecture}.deb")


@pytest.fixture(scope="session")
def installed(
    package: Path, emulator_package: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Both of these, as a layer of trees: installed where no systemd runs, as into an image."""
    folder = tmp_path_factory.mktemp("installed")
    with laid_over(folder, kept=True) as root:
        command = ["dpkg", f"--root={root}", "--install", str(package), str(emulator_package)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    yield folder / "written"
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def rpm_package(package: Path) -> Path:
    """The same as ``package``, for systems with rpm."""
    return _newest(f"nodeagent-[0-9]*.{platform.machine()}.rpm")


@pytest.fixture(scope="session")
def rpm_emulator_package(package: Path) -> Path:
    return _newest(f"nodeagent-emulator-[0-9]*.{platform.machine()}.rpm")


def _newest(pattern: str) -> Path:
    return max((ROOT / "dist").glob(pattern), key=lambda path: path.stat().st_mtime_ns)


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


@pytest.fixture(scope="session")
def former_package(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it might have been when stores had the schema before: its scripts, and no files."""
    tree = tmp_path_factory.mktemp("former") / "tree"
    scripts = tree / "DEBIAN"
    tree.mkdir()
    subprocess.run(["dpkg-deb", "--control", package, scripts], check=True)
    for name, was, then in (
        ("control", r"^Version: .*$", "Version: 0.0.1"),
        ("preinst", r"^KNOWN_SCHEMA=.*$", f"KNOWN_SCHEMA={SCHEMA_VERSION - 1}"),
    ):
        file = scripts / name
        file.write_text(re.sub(was, then, file.read_text(), flags=re.MULTILINE))
    (scripts / "conffiles").unlink()
    built = tree.with_name("nodeagent-former.deb")
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "--build", tree, built], check=True, capture_output=True
    )
    return built


@pytest.fixture(scope="session")
def next_rpm_package(rpm_package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``next_package`` is to ``package``."""
    return as_next_version(tmp_path_factory.mktemp("next") / "rpm", rpm_package)
