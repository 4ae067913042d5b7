"""Finding the library, and saying why not."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.drivers.api import Unavailable
from nodeagent.drivers.ascend import opening
from nodeagent.drivers.ascend.opening import load
from nodeagent.emulator.node import EmulatedNode

NAME = "libdcmi.so"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return EmulatedNode.create(tmp_path / "node", "1x910B").dcmi


def refusal(configured: str) -> Unavailable:
    with pytest.raises(Unavailable) as refused:
        load(NAME, configured, {})
    return refused.value


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """As a user who may read no file of others, also where the tests run as root."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(own)


def test_the_configured_library_is_loaded(library: Path) -> None:
    assert load(NAME, str(library), {})._name == str(library)


def test_a_library_is_found_where_the_linker_looks(library: Path) -> None:
    path = f"/nowhere::{library.parent}"
    assert load(NAME, "", {"LD_LIBRARY_PATH": path})._name == str(library)


def test_a_library_is_found_where_the_installer_puts_it(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = library.rename(library.with_name("libinstalled.so"))
    monkeypatch.setattr(opening, "USUAL_FOLDERS", (Path("/nowhere"), library.parent))
    assert load(installed.name, "", {})._name == str(installed)


def test_what_the_linker_knows_goes_before_where_the_installer_puts_it(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libm.so.6").write_bytes(library.read_bytes())
    monkeypatch.setattr(opening, "USUAL_FOLDERS", (tmp_path,))
    assert load("libm.so.6", "", {})._name == "libm.so.6"


def test_a_library_with_a_symbol_missing_that_nobody_calls_is_loaded(tmp_path: Path) -> None:
    lacking = tmp_path / NAME
    source = "int newer(void); int answer(void) { return 8; } int other(void) { return newer(); }"
    command = ["cc", "-shared", "-fPIC", "-Wl,-z,lazy", "-o", str(lacking), "-x", "c", "-"]
    subprocess.run(command, input=source, text=True, check=True)
    assert load(NAME, str(lacking), {}).answer() == 8


def test_a_library_that_is_nowhere_is_absent() -> None:
    with pytest.raises(Unavailable) as refused:
        load("libnowhere.so", "", {})
    assert refused.value.absent
    assert str(refused.value) == "libnowhere.so is not installed"


def test_a_configured_library_that_is_not_there_is_absent(tmp_path: Path) -> None:
    refused = refusal(str(tmp_path / NAME))
    assert refused.absent
    assert str(refused) == f"{tmp_path / NAME}: there is no such library"


def test_a_library_for_another_machine_is_told_as_such(library: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.so"
    code = bytearray(library.read_bytes())
    code[18:20] = (0x15).to_bytes(2, "little")
    foreign.write_bytes(code)
    refused = refusal(str(foreign))
    assert not refused.absent
    assert str(refused) == f"{foreign} is built for machine 0x15, this machine is {os.uname().machine}"


def test_a_file_that_is_no_library_is_told_as_such(tmp_path: Path) -> None:
    text = tmp_path / NAME
    text.write_text("no library")
    refused = refusal(str(text))
    assert not refused.absent
    assert str(refused) == f"{text} is no shared library"


def test_a_library_that_is_cut_off_is_told_as_such(library: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.so"
    cut.write_bytes(library.read_bytes()[:64])
    refused = refusal(str(cut))
    assert not refused.absent
    assert str(refused).startswith(f"{cut} cannot be loaded: ")


def test_a_library_that_may_not_be_read_is_told_as_such(library: Path) -> None:
    library.chmod(0)
    with nobody():
        refused = refusal(str(library))
    assert not refused.absent
    assert str(refused) == f"{library}: Permission denied"
