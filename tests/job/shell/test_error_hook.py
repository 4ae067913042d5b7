"""The error of a Python program, and its stacks, are known where its standard error is a pipe."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent.job.session.values import ProcessId
from nodeagent.job.shell import procfs
from nodeagent.job.shell.error_folder import ErrorFolder
from nodeagent.job.shell.state_folder import open_given
from nodeagent.job.watching import evidence
from nodeagent.job.watching.evidence import EvidenceRequest
from tests.job.shell.supervised import Place, build
from tests.waiting import WAIT_LIMIT_S

RETRIES = ("--in-place-retries", "1", "--verdict-wait", "0s")
FAILS = "raise ValueError('bad config')"
LAUNCHER = """\
import os, subprocess, sys
rank = [sys.executable, "-c", sys.argv[1]]
ranks = [subprocess.Popen(rank, env={**os.environ, "RANK": str(n)}) for n in (0, 1)]
sys.exit(max(rank.wait() for rank in ranks))
"""


def test_error_of_the_job_is_known_where_its_standard_error_is_a_pipe(place: Place) -> None:
    done = place.run(sys.executable, "-c", FAILS, options=RETRIES)

    assert done.returncode == 87
    assert done.stderr.count(b"ValueError: bad config") == 2  # its own, and ours
    assert b"an error of the job itself: ValueError: bad config" in done.stderr


def test_error_of_a_rank_below_a_launcher_is_known(place: Place) -> None:
    done = place.run(sys.executable, "-c", LAUNCHER, FAILS, options=RETRIES)

    assert done.returncode == 87
    assert b"an error of the job itself: ValueError: bad config" in done.stderr


def test_error_is_known_where_a_program_replaces_the_hook(place: Place) -> None:
    script = f"import sys; sys.excepthook = lambda *_: print('own', file=sys.stderr); {FAILS}"

    done = place.run(sys.executable, "-c", script, options=RETRIES)

    assert done.returncode == 87


def test_one_file_has_the_hook(place: Place, tmp_path: Path) -> None:
    built = build(tmp_path / "nodeagent-job.pyz")

    done = subprocess.run(
        [sys.executable, built, "run", *RETRIES, "--", sys.executable, "-c", FAILS],
        env={**place.environment, "PYTHONPATH": ""},
        capture_output=True,
        timeout=WAIT_LIMIT_S,
        check=False,
    )

    assert done.returncode == 87
    assert b"an error of the job itself" in done.stderr


def test_sitecustomize_of_the_site_is_run_too(place: Place, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("print('of the site')")
    script = (
        "import sys; print(any('errors-' in each for each in sys.path),"
        " sys.modules['sitecustomize'].__file__)"
    )

    done = place.run(
        sys.executable,
        "-c",
        script,
        options=RETRIES,
        env={"PYTHONPATH": f"{site}:{place.environment['PYTHONPATH']}"},
    )

    assert done.stdout.decode() == f"of the site\nFalse {site}/sitecustomize.py\n"


@pytest.mark.parametrize("options", [(), (*RETRIES, "--no-error-hook")], ids=["only watched", "not wanted"])
def test_environment_is_left_alone(place: Place, options: tuple[str, ...]) -> None:
    done = place.run(sys.executable, "-c", "import os; print(os.environ['PYTHONPATH'])", options=options)

    assert done.stdout.decode().strip() == place.environment["PYTHONPATH"]


def test_nothing_is_left_of_it(place: Place) -> None:
    place.run(sys.executable, "-c", "pass", options=RETRIES)

    assert [each.name for each in place.folder.glob("nodeagent-job-*/errors-*")] == []


HUNG = "import time\ndef stands_still():\n    print('ready', flush=True)\n    time.sleep(600)\nstands_still()"


@pytest.fixture
def errors(tmp_path: Path) -> Iterator[ErrorFolder]:
    opened = ErrorFolder(tmp_path / "errors")
    yield opened
    opened.close()


def test_stacks_of_each_rank_are_named_by_rank_and_pid_and_end_none(
    tmp_path: Path, errors: ErrorFolder
) -> None:
    """Their standard error is a pipe."""
    hook = errors.begin({})
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", HUNG],
            env={**os.environ, **hook, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for rank in (3, 4)
    ]
    state = open_given(tmp_path / "state", {})
    try:
        for each in ranks:
            assert each.stdout is not None
            each.stdout.readline()
        of_ranks = [ProcessId(pid=each.pid, start_time=_start_time(each.pid)) for each in ranks]
        wanted = EvidenceRequest(
            run=1, members=of_ranks, ranks=of_ranks, aborts=True, samples=(), within_s=10.0, errors=errors
        )
        gathering = evidence.begin_gathering(state, wanted)
        os.waitpid(gathering.pid, 0)

        first, second = (gathering.folder / "python.txt").read_text().split("== ")[1:]
        assert first.startswith(f"rank 3, pid {ranks[0].pid}\n")
        assert second.startswith(f"rank 4, pid {ranks[1].pid}\n")
        assert "in stands_still" in first
        assert "in stands_still" in second
        assert [each.poll() for each in ranks] == [None, None]
    finally:
        state.close()
        for each in ranks:
            each.kill()
            each.communicate(timeout=WAIT_LIMIT_S)


def _start_time(pid: int) -> int:
    found = procfs.stat(pid)
    assert found is not None
    return found.start_time
