"""Why a device file may not be opened, with what would have to change."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.drivers.shared.denied import denials
from tests.cgroups import hierarchy, needs

NOBODY = 65534


def test_nothing_denied_is_nothing_said() -> None:
    assert denials([Path("/dev/null"), Path("/dev/zero")]) == ""


def test_what_is_not_there_may_be_hidden(tmp_path: Path) -> None:
    device = tmp_path / "davinci0"
    assert denials([Path("/dev/null"), device]) == (
        f"cannot open {device}: No such file or directory"
        " (in a systemd unit PrivateDevices= hides it; in a container it must be passed in)"
    )


@pytest.fixture
def closed_group() -> Iterator[Path]:
    """A control group whose processes may open no device, as DevicePolicy=closed makes it."""
    with hierarchy("devices") as top:
        group = top / "nodeagent-test-denied"
        group.mkdir()
        (group / "devices.deny").write_text("a")
        yield group
        group.rmdir()


@needs("devices")
@pytest.mark.root
def test_a_device_that_the_unit_does_not_hold_asks_for_its_directive(closed_group: Path) -> None:
    program = "import os, sys\nfrom pathlib import Path\n"
    program += "from nodeagent.drivers.shared.denied import denials\n"
    program += "Path(sys.argv[1]).write_text(str(os.getpid()))\nprint(denials([Path('/dev/kmsg')]))\n"
    done = subprocess.run(
        [sys.executable, "-c", program, str(closed_group / "cgroup.procs")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(
        "cannot open /dev/kmsg: Operation not permitted (in a systemd unit DeviceAllow= must hold it"
    )


@pytest.mark.root
def test_a_device_without_a_driver_asks_for_its_module(tmp_path: Path) -> None:
    device = tmp_path / "nvidia0"
    os.mknod(device, 0o600 | 0o020000, os.makedev(240, 77))
    assert denials([device]).startswith(f"cannot open {device}: ")
    assert "is the vendor's kernel module loaded?" in denials([device])


@pytest.mark.root
def test_a_file_of_another_user_asks_for_the_user() -> None:
    """In a process of its own: a user that was given up cannot be taken again."""
    program = "from pathlib import Path\nfrom nodeagent.drivers.shared.denied import denials\n"
    program += f"import os\nos.setuid({NOBODY})\nprint(denials([Path('/dev/kmsg'), Path('/dev/null')]))\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "cannot open /dev/kmsg: Permission denied"
        " (its group and mode keep this user out: in a systemd unit set Group= to that group; root needs"
        " CAP_DAC_OVERRIDE to pass)\n"
    )
