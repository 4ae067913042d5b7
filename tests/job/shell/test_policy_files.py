"""A policy that cannot be meant keeps the command from being run, and says where it stands."""

import subprocess
from pathlib import Path

import pytest

from nodeagent.job.policy.policy import kill_wait_s
from tests.job.shell.supervised import Place
from tests.waiting import WAIT_LIMIT_S


def test_bad_value_in_a_file_is_named_with_file_line_and_range(place: Place, tmp_path: Path) -> None:
    annotations = tmp_path / "annotations"
    annotations.write_text('app="llama"\nfault-tolerance/job-retry-num="500"\n')

    done = place.run("touch", str(tmp_path / "ran"), options=("--annotations", str(annotations)))

    assert done.returncode == 78
    assert done.stderr.decode() == (
        f"nodeagent-job: fault-tolerance/job-retry-num ({annotations}, line 2):"
        " a whole number from 1 to 128, not '500'\n"
    )
    assert not (tmp_path / "ran").exists()


def test_every_bad_value_has_a_line(place: Place) -> None:
    done = place.run("true", options=("--grace", "soon"), env={"NODEAGENT_JOB_HANG": "perhaps"})

    assert done.returncode == 78
    assert sorted(done.stderr.decode().splitlines()) == [
        "nodeagent-job: NODEAGENT_JOB_HANG (environment): one of off, notify, restart, not 'perhaps'",
        "nodeagent-job: grace (--grace): a time from 0s to 1h, as 90s, 5m or 2h, not 'soon'",
    ]


def test_file_that_cannot_be_read_is_named(place: Place) -> None:
    done = place.run("true", options=("--policy", "/nonexistent/policy"))

    assert done.returncode == 78
    assert done.stderr == b"nodeagent-job: --policy: /nonexistent/policy: No such file or directory\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--no-such-option", "true"], "unrecognized arguments: --no-such-option"),
        ([], "no COMMAND to run"),
        (["--period", "0", "true"], "argument --period: from 0.05 to 60 seconds, not 0"),
        (
            ["--hang-time", "10s", "--period", "10", "true"],
            "hang-time: at least 120s with a sample each 10 s",
        ),
    ],
)
def test_command_line_that_is_not_understood_runs_nothing(place: Place, words: list[str], said: str) -> None:

    line = [each for each in place.words([]) if each != "--"]
    done = subprocess.run(
        [*line, *words], env=place.environment, capture_output=True, check=False, timeout=WAIT_LIMIT_S
    )

    assert done.returncode == 78
    assert done.stderr.decode().startswith(f"nodeagent-job: {said}")


def test_grace_that_the_scheduler_would_cut_short_is_refused(place: Place, tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("ClusterName=c\n  killwait = 15\n")
    slurm = {"SLURM_JOB_ID": "7", "SLURM_CONF": str(tmp_path / "slurm.conf")}

    done = place.run("true", options=("--grace", "15s"), env=slurm)

    assert done.returncode == 78
    assert "below the 15 s after which the scheduler kills (KillWait)" in done.stderr.decode()
    assert place.run("true", options=("--grace", "14s"), env=slurm).returncode == 0


def test_time_between_term_and_kill_is_slurms(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text("#KillWait=99\nClusterName=c\n")
    slurm = {"SLURM_JOB_ID": "7", "SLURM_CONF": str(conf)}

    assert kill_wait_s(slurm) == 30.0
    assert kill_wait_s({**slurm, "SLURM_CONF": "/nonexistent"}) is None
    assert kill_wait_s({"SLURM_CONF": str(conf)}) is None


def test_boolean_of_the_site_can_be_turned_off_by_a_flag(place: Place) -> None:
    done = place.run("sh", "-c", "exit 3", options=("--no-in-place",), env={"NODEAGENT_JOB_IN_PLACE": "true"})

    assert (done.returncode, done.stderr) == (3, b"")
