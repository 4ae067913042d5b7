"""A library that cannot start says "inner error"; which device file keeps us out is said beside it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodeagent.drivers.api import Unavailable
from nodeagent.drivers.ascend.opening import NotLoaded, explained

FAILED = Unavailable("dcmi_init: inner error (INNER_ERR, -8005)", errno=8005)


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    for name in ("davinci_manager", "davinci0", "davinci1"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o660)
    return tmp_path


@pytest.mark.root
def test_root_outside_their_group_is_told_who_keeps_it_out(devices: Path) -> None:
    for path in devices.iterdir():
        os.chown(path, 65534, 65534)
    script = (
        "import sys; from pathlib import Path;"
        "from tests.drivers.ascend.test_device_files import FAILED;"
        "from nodeagent.drivers.ascend.opening import explained;"
        "print(explained(FAILED, Path(sys.argv[1])))"
    )
    command = ["setpriv", "--bounding-set=-all", sys.executable, "-c", script, str(devices)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    hint = (
        " (its group and mode keep this user out: in a systemd unit set Group= to that group; root needs"
        " CAP_DAC_OVERRIDE to pass)"
    )
    assert ran.stdout.strip() == (
        f"{FAILED}; cannot open {devices}/davinci_manager: Permission denied{hint};"
        f" cannot open {devices}/davinci0: Permission denied{hint}"
    ), ran.stderr


def test_where_nothing_is_denied_nothing_is_added(devices: Path) -> None:
    assert explained(FAILED, devices) is FAILED


def test_a_library_that_is_not_there_has_asked_for_no_device(devices: Path) -> None:
    missing = NotLoaded("libdcmi.so is not installed", absent=True)
    assert explained(missing, devices) is missing
