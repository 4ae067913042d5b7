"""The supervisor of jobs as the one file that goes into any image."""

import subprocess
import sys
from pathlib import Path

from tests.harness.configuration import ROOT
from tests.waiting import WAIT_LIMIT_S


def build(target: Path) -> Path:
    subprocess.run(
        [sys.executable, ROOT / "packaging/build_job_pyz.py", target], check=True, timeout=WAIT_LIMIT_S
    )
    return target
