"""The compiled objects of the packages: they run on each system that the packages say they run on."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.e2e.elf import MACHINE, Elf, begins_as_elf, elf

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

OLDEST_GLIBC = (2, 28)
PACKAGE_OF = {
    "ld-linux-x86-64.so.2": "libc6",
    "ld-linux-aarch64.so.1": "libc6",
    "libc.so.6": "libc6",
    "libdl.so.2": "libc6",
    "libm.so.6": "libc6",
    "libpthread.so.0": "libc6",
    "librt.so.1": "libc6",
    "libutil.so.1": "libc6",
    "libgcc_s.so.1": "libgcc-s1",
    "libstdc++.so.6": "libstdc++6",
    "libsystemd.so.0": "libsystemd0",
}
"""Library -> the package that has it, in Debian's words."""


@pytest.fixture(scope="module", params=["", pytest.param("arm64_", marks=pytest.mark.release)])
def packages(request: pytest.FixtureRequest) -> tuple[Path, Path]:
    """The daemon's and the emulator's, for this machine and for arm64."""
    names = (f"{request.param}package", f"{request.param}emulator_package")
    daemon, emulator = map(request.getfixturevalue, names)
    return daemon, emulator


@pytest.fixture(scope="module")
def objects(packages: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Elf]:
    """By the path in the packages."""
    tree = tmp_path_factory.mktemp("objects")
    for package in packages:
        subprocess.run(["dpkg-deb", "--extract", package, tree], check=True)
    found = {}
    for path in tree.rglob("*"):
        if path.is_file() and not path.is_symlink() and begins_as_elf(path):
            found[f"/{path.relative_to(tree)}"] = elf(path)
    return found


def field(package: Path, name: str) -> str:
    return subprocess.run(
        ["dpkg-deb", "--field", package, name], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_each_object_is_for_the_architecture_of_the_package(
    packages: tuple[Path, Path], objects: Mapping[str, Elf]
) -> None:
    assert "/usr/lib/nodeagent/python/bin/python3.13" in objects
    assert any(path.endswith("/libdcmi.so") for path in objects)
    assert {each.machine for each in objects.values()} == {
        MACHINE[field(package, "Architecture")] for package in packages
    }


def test_no_object_asks_for_a_newer_glibc_than_the_oldest_that_the_package_takes(
    objects: Mapping[str, Elf],
) -> None:
    assert {path: each.glibc for path, each in objects.items() if each.glibc > OLDEST_GLIBC} == {}


def test_the_package_depends_on_what_its_objects_need_and_on_no_other_library(
    packages: tuple[Path, Path], objects: Mapping[str, Elf]
) -> None:
    declared = {re.split(r"[ |(]", each.strip())[0] for each in field(packages[0], "Depends").split(",")}
    needed = {PACKAGE_OF[library] for each in objects.values() for library in each.needed}

    assert {each for each in declared if each.startswith("lib")} == needed
    assert not any("python" in each for each in declared)


def test_the_reader_of_journals_does_without_what_came_after_libsystemd_239(
    objects: Mapping[str, Elf],
) -> None:
    (reader,) = (each for path, each in objects.items() if "/systemd/_reader." in path)

    assert {"sd_journal_enumerate_available_data", "sd_journal_enumerate_available_unique"} <= reader.weak
    newer = {"sd_journal_open_namespace", "sd_journal_step_one", "sd_journal_stream_fd_with_namespace"}
    assert newer & reader.weak == set()
