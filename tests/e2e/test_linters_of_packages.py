"""lintian and rpmlint find nothing in the packages that is not explained beside what silences them."""

import subprocess
from pathlib import Path

import pytest

from tests.documents import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.release, pytest.mark.timeout(1200)]

CONFIGURATION = ROOT / "packaging/rpmlint.toml"


def test_lintian_finds_nothing(package: Path, emulator_package: Path) -> None:
    command = ["lintian", "--allow-root", "--fail-on=error,warning", "--tag-display-limit=0"]
    done = subprocess.run(
        [*command, str(package), str(emulator_package)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (0, ""), done.stdout


def test_rpmlint_finds_nothing(rpm_package: Path, rpm_emulator_package: Path) -> None:
    command = ["rpmlint", "--config", CONFIGURATION, rpm_package, rpm_emulator_package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert "2 packages and 0 specfiles checked; 0 errors, 0 warnings" in done.stdout, done.stdout
