"""The error of a Python program, and its stacks, are known where its standard error is a pipe."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodeagent.job.session.values import ProcessId
from nodeagent.job.shell import procfs, tree
from nodeagent.job.shell.error_folder import ErrorFolder
from nodeagent.job.shell.state_folder import open_given
from nodeagent.job.watching import evidence
from nodeagent.job.watching.evidence import EvidenceRequest
from tests.job.shell.supervised import Place, build, interpreter
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


FORKS = r"""
import os, time
os.write(1, f'{os.getpid()}\n'.encode())
for rank in (3, 4):
    if os.fork() == 0:
        os.environ['RANK'] = str(rank)
        os.write(1, f'{os.getpid()}\n'.encode())
        time.sleep(600)
time.sleep(600)
"""


@pytest.fixture
def errors(tmp_path: Path) -> Iterator[ErrorFolder]:
    opened = ErrorFolder(tmp_path / "errors")
    yield opened
    opened.close()


@contextmanager
def python(errors: ErrorFolder, script: str, rank: str = "") -> Iterator["subprocess.Popen[bytes]"]:
    """Below no supervisor; its standard error is a pipe."""
    started = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, **errors.begin({}), "RANK": rank},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield started
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate(timeout=WAIT_LIMIT_S)


def first_line(process: "subprocess.Popen[bytes]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode()


def gathered(tmp_path: Path, pids: Sequence[int]) -> Path:
    """The folder of the evidence of these ranks."""
    state = open_given(tmp_path / "state", {})
    try:
        ranks = [ProcessId(pid=each, start_time=_start_time(each)) for each in pids]
        wanted = EvidenceRequest(run=1, members=ranks, ranks=ranks, aborts=True, samples=(), within_s=10.0)
        gathering = evidence.begin_gathering(state, wanted)
        os.waitpid(gathering.pid, 0)
        return gathering.folder
    finally:
        state.close()


def test_stacks_of_each_rank_are_named_by_rank_and_pid_and_end_none(
    tmp_path: Path, errors: ErrorFolder
) -> None:
    with python(errors, HUNG, "3") as third, python(errors, HUNG, "4") as fourth:
        ranks = (third, fourth)
        assert [first_line(each) for each in ranks] == ["ready\n"] * 2

        folder = gathered(tmp_path, [each.pid for each in ranks])

        first, second = (folder / "python.txt").read_text().split("== ")[1:]
        assert first.startswith(f"rank 3, pid {third.pid}\n")
        assert second.startswith(f"rank 4, pid {fourth.pid}\n")
        assert "in stands_still" in first
        assert "in stands_still" in second
        assert [each.poll() for each in ranks] == [None, None]


def test_ranks_that_a_program_forks_have_stacks_of_their_own(tmp_path: Path, errors: ErrorFolder) -> None:
    """As multiprocessing does with the method ``fork``. The launcher has stacks, too, and is not asked."""
    with python(errors, FORKS) as launcher:
        pids = sorted({int(first_line(launcher)) for _ in range(3)} - {launcher.pid})

        text = (gathered(tmp_path, pids) / "python.txt").read_text()

    assert [int(each.partition("pid ")[2].split()[0]) for each in text.split("== ")[1:]] == pids
    assert text.count("Current thread") == 2


def test_rank_that_ends_while_its_stacks_are_asked_for_spoils_nothing(
    tmp_path: Path, errors: ErrorFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with python(errors, HUNG, "3") as ending, python(errors, HUNG, "4") as other:
        for each in (ending, other):
            first_line(each)
        asked = tree.send

        def ends(process: ProcessId, number: int) -> None:
            asked(process, signal.SIGKILL if process.pid == ending.pid else number)

        monkeypatch.setattr(evidence, "send", ends)

        text = (gathered(tmp_path, [ending.pid, other.pid]) / "python.txt").read_text()

    assert "no stacks: " in text
    assert "in stands_still" in text


VERSIONS = ["2.7", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13"]


@pytest.mark.parametrize("version", VERSIONS)
def test_python_of_any_version_runs_as_it_does_without_the_hook(place: Place, version: str) -> None:
    found = interpreter(version)
    if found is None:
        pytest.skip(f"no Python {version} here")
    env = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": ""}
    bare = subprocess.run([found, "-c", FAILS], env=env, capture_output=True, check=False)

    done = place.run(found, "-c", FAILS, options=RETRIES, env={"NODEAGENT_JOBS_SOCKET": "/nonexistent"})

    own = [each for each in done.stderr.splitlines() if not each.startswith(b"nodeagent-job:")]
    runs = 1 if version not in ("2.7", "3.6", "3.7") else 2
    assert own == bare.stderr.splitlines() * runs
    assert done.returncode == 87


@pytest.mark.parametrize("option", ["-S", "-I", "-E", "-Is"])
def test_python_that_has_no_hook_runs_as_ever(place: Place, option: str) -> None:
    script = "import sys; print('sitecustomize' in sys.modules or 'well')"

    done = place.run("/usr/bin/python3", option, "-c", script, options=RETRIES)

    assert done.returncode == 0
    assert done.stdout in (b"well\n", b"True\n")  # -I and -E keep the site's own, where there is one


def test_virtual_environment_keeps_its_own_sitecustomize(place: Place, tmp_path: Path) -> None:
    base = interpreter("3.12")
    if base is None:
        pytest.skip("no Python 3.12 here")  # that of Debian has a sitecustomize, which comes first
    subprocess.run([base, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    site = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    (site / "sitecustomize.py").write_text("print('of the environment')")

    done = place.run(str(tmp_path / "venv/bin/python"), "-c", FAILS, options=RETRIES)

    assert done.stdout == b"of the environment\n"
    assert done.returncode == 87


def test_program_of_another_user_runs_without_the_hook(place: Place) -> None:
    """It may read neither the folder of the hook, nor write to that of errors."""
    if os.getuid() != 0:
        pytest.skip("needs root")
    drops = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c")

    done = place.run(*drops, "print('well')", options=RETRIES, env={"PYTHONPATH": ""})

    assert (done.returncode, done.stdout) == (0, b"well\n")
    assert b"Error" not in done.stderr


def test_folder_that_a_run_has_removed_is_made_again(place: Place) -> None:
    """Without it the error of that run is not known, and nothing else is lost."""
    removes = "import os, shutil; shutil.rmtree(os.environ['NODEAGENT_ERRORS']); "
    script = f"import os\nif os.environ['NODEAGENT_RUN'] == '1': {removes}\n{FAILS}"

    done = place.run(sys.executable, "-c", script, options=RETRIES)

    assert done.stderr.count(b"Traceback") == 2
    assert b"leaves with status 87: an error of the job itself: ValueError" in done.stderr


EXITS_AT_ONCE = """\
import os, sys, traceback
def handler(kind, error, trace):
    print(''.join(traceback.format_exception(kind, error, trace)), file=sys.stderr, flush=True)
    os._exit(1)
sys.excepthook = handler
"""


def test_error_is_known_where_the_hook_of_another_ends_the_program_at_once(place: Place) -> None:
    """As NVIDIA's resiliency extension does."""
    done = place.run(sys.executable, "-c", EXITS_AT_ONCE + FAILS, options=RETRIES)

    assert done.returncode == 87
    assert b"an error of the job itself: ValueError: bad config" in done.stderr


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_error_of_a_process_that_multiprocessing_makes_is_known_by_its_parent(
    place: Place, tmp_path: Path, method: str
) -> None:
    script = tmp_path / "main.py"
    script.write_text(
        "from concurrent.futures import ProcessPoolExecutor\n"
        "import multiprocessing\n"
        "def fails(): raise ValueError('bad config')\n"
        "if __name__ == '__main__':\n"
        f"    with ProcessPoolExecutor(1, multiprocessing.get_context({method!r})) as pool:\n"
        "        pool.submit(fails).result()\n"
    )

    done = place.run(sys.executable, str(script), options=RETRIES)

    assert done.returncode == 87
    assert b"an error of the job itself: ValueError: bad config" in done.stderr


def _start_time(pid: int) -> int:
    found = procfs.stat(pid)
    assert found is not None
    return found.start_time
