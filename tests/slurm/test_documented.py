"""The lines of slurm.conf and gres.conf that docs/slurm.md shows: a real Slurm takes each of them."""

from pathlib import Path

import pytest

from nodeagent.schedulers.slurm.configuration import settings_of
from tests.documents import ROOT, blocks
from tests.slurm.cluster import cluster
from tests.slurm.hooks import HOOKS

pytestmark = pytest.mark.root

PROGRAMS = {"Prolog": HOOKS / "prolog", "Epilog": HOOKS / "epilog"}


def test_slurm_takes_every_line_that_is_shown(tmp_path: Path) -> None:
    shown = [text for text in blocks("text", ROOT / "docs" / "slurm.md") if text.startswith("# slurm.conf\n")]
    settings = dict(line.split("=", 1) for text in shown for line in text.splitlines()[1:])
    assert {"RequeueExit", "KillWait", "AuthInfo", "Prolog", "HealthCheckProgram"} <= settings.keys()
    # Its own munge, and a job's hooks that lie in the checkout.
    own = {"AuthInfo": f"socket={tmp_path}/slurm/munge.sock,{settings['AuthInfo']}"}
    own |= {key: str(path) for key, path in PROGRAMS.items()}

    with cluster(tmp_path / "slurm", nodes=("n1",), settings={**settings, **own}) as slurm:
        held = settings_of(slurm.run("scontrol", "show", "config"))
        for key, value in {**settings, **own}.items():
            unit = {"KillWait": " sec", "HealthCheckInterval": " sec"}.get(key, "")
            assert held[key] == (value + unit,), key
        job = slurm.submit("exit 86", "--requeue")
        slurm.comes(lambda: slurm.job(job)["Restarts"] == "1", "it is queued again")
