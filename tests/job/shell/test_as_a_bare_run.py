"""Where nothing happens, a supervised command does what it would do without: byte for byte."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.job.shell.supervised import Place, lives, pids_in
from tests.waiting import WAIT_LIMIT_S, wait_until

COMMANDS = {
    "true": "exec true",
    "false": "exec false",
    "status 7": "exit 7",
    "status 255": "exit 255",
    "a status of our own": "exit 86",
    "both outputs": "echo out; echo err >&2; exit 3",
    "bytes that are no text": r"printf '\000\377\200\n\r\000'",
    "a lot of output": f"{sys.executable} -c 'import sys; sys.stdout.buffer.write(bytes(range(256)) * 4096)'",
    "what it is given": "cat; cat <&0 >&2",
    "a child in the background": "(sleep 0.2; echo late) & echo soon; wait",
    "a child that is not waited for": "sleep 0.01 & exit 4",
    "a signal by itself": "kill -SEGV $$",
    "a pipe that breaks": "yes | head -n 2",
    "its directory": "pwd; umask; ulimit -n",
}


@pytest.mark.parametrize("script", COMMANDS.values(), ids=COMMANDS.keys())
def test_outputs_and_status_are_those_of_the_bare_command(place: Place, script: str) -> None:
    given = b"some\0input\n"
    bare = subprocess.run(
        ["sh", "-c", script],
        env=place.environment,
        input=given,
        capture_output=True,
        timeout=WAIT_LIMIT_S,
        check=False,
    )

    supervised = place.run("sh", "-c", script, input=given)

    assert supervised.stdout == bare.stdout
    assert supervised.stderr == bare.stderr
    assert supervised.returncode == (bare.returncode if bare.returncode >= 0 else 128 - bare.returncode)


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("no-such-command", 127, "no-such-command: No such file or directory"),
        ("/etc/passwd", 126, "/etc/passwd: Permission denied"),
        ("/", 126, "/: Permission denied"),
    ],
)
def test_command_that_cannot_be_run_gives_the_status_of_a_shell(
    place: Place, command: str, status: int, said: str
) -> None:
    done = place.run(command)

    assert done.returncode == status
    assert done.stderr.decode() == f"nodeagent-job: the command cannot be run: {said}\n"


def test_script_without_an_interpreter_runs_as_in_a_shell(place: Place, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo $1; exit 6\n")
    script.chmod(0o755)

    done = place.run(str(script), "word")

    assert (done.stdout, done.returncode) == (b"word\n", 6)


def test_child_that_outlives_the_command_goes_on(place: Place, tmp_path: Path) -> None:
    done = place.run("sh", "-c", f"sleep 60 >/dev/null 2>&1 & echo $! > {tmp_path}/pid; exit 0")
    [pid] = pids_in(tmp_path / "pid", 1)

    assert done.returncode == 0
    assert lives(pid)
    os.kill(pid, signal.SIGKILL)


def test_descriptors_that_a_launcher_hands_down_are_the_commands_too(place: Place) -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as end:
        say = f"import os; os.write({write}, b'through')"
        done = place.run(sys.executable, "-c", say, pass_fds=(write,))
        os.close(write)

        assert (done.returncode, end.read()) == (0, b"through")


def test_what_is_ignored_by_nohup_is_ignored_by_the_command(place: Place) -> None:
    show = "import signal; print(signal.getsignal(signal.SIGHUP).name)"
    words = place.words([sys.executable, "-c", show])

    done = subprocess.run(
        ["nohup", *words], env=place.environment, capture_output=True, timeout=WAIT_LIMIT_S, check=False
    )

    assert done.stdout == b"SIG_IGN\n"


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGHUP,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGWINCH,
        signal.SIGQUIT,
        signal.SIGXCPU,
        signal.SIGALRM,
        signal.SIGURG,
    ],
)
def test_signals_for_the_command_reach_it(place: Place, tmp_path: Path, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got {name}; exit 9' {name}; echo $$ > {tmp_path}/pid; while :; do sleep 0.05; done"
    with place.started("sh", "-c", script) as supervisor:
        pids_in(tmp_path / "pid", 1)
        supervisor.send_signal(number)

        assert supervisor.communicate(timeout=WAIT_LIMIT_S)[0] == f"got {name}\n".encode()
        assert supervisor.returncode == 9


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_signal_for_the_command_is_not_one_for_its_children(
    place: Place, tmp_path: Path, number: signal.Signals
) -> None:
    """A script that is warned by its scheduler, and lets its ranks go on."""
    name = number.name.removeprefix("SIG")
    ranks = f"sleep 600 & echo $! > {tmp_path}/rank; trap 'echo warned' {name}; echo $$ > {tmp_path}/pid"
    script = (
        f"{ranks}; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; kill -0 $! && echo goes on; kill $!"
    )
    with place.started("sh", "-c", script) as supervisor:
        pids_in(tmp_path / "pid", 1)
        supervisor.send_signal(number)
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == b"warned\n"
        (tmp_path / "go").touch()

        assert supervisor.stdout.readline() == b"goes on\n"


def test_second_signal_of_the_scheduler_is_the_commands_too(place: Place, tmp_path: Path) -> None:
    until_go = f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; exit 5"
    script = f"trap 'echo got it' TERM; echo $$ > {tmp_path}/pid; {until_go}"
    with place.started("sh", "-c", script) as supervisor:
        pids_in(tmp_path / "pid", 1)
        assert supervisor.stdout is not None
        for _ in range(2):
            supervisor.send_signal(signal.SIGTERM)
            assert supervisor.stdout.readline() == b"got it\n"
        (tmp_path / "go").touch()

        assert supervisor.wait(WAIT_LIMIT_S) == 5


def test_directory_that_was_removed_keeps_no_command_from_running(place: Place, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    words = " ".join(f"'{each}'" for each in place.words(["sh", "-c", "echo runs"]))
    removes = f"cd {gone} && rmdir {gone} && exec {words}"

    done = subprocess.run(
        ["sh", "-c", removes], env=place.environment, capture_output=True, timeout=WAIT_LIMIT_S, check=False
    )

    assert (done.returncode, done.stdout) == (0, b"runs\n")


@pytest.mark.root
@pytest.mark.parametrize("options", [[], ["--in-place"]], ids=["watched", "with a policy"])
def test_command_runs_where_there_is_no_proc(place: Place, options: list[str]) -> None:
    words = " ".join(f"'{each}'" for each in place.words(["sh", "-c", "echo runs; exit 7"], options))
    hides = f"mount -t tmpfs none /proc && exec {words}"

    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", hides],
        env=place.environment,
        capture_output=True,
        timeout=WAIT_LIMIT_S,
        check=False,
    )

    assert (done.returncode, done.stdout) == (7, b"runs\n")


@pytest.mark.root
def test_job_can_be_ended_where_there_is_no_proc(place: Place, tmp_path: Path) -> None:
    command = ["sh", "-c", f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.1; done"]
    words = " ".join(f'"{each}"' for each in place.words(command, ["--in-place", "--grace", "0s"]))
    hides = f"mount -t tmpfs none /proc && exec {words}"
    with subprocess.Popen(["unshare", "--mount", "sh", "-c", hides], env=place.environment) as supervisor:
        [pid] = pids_in(tmp_path / "pid", 1)

        supervisor.send_signal(signal.SIGTERM)

        assert supervisor.wait(WAIT_LIMIT_S) == 128 + signal.SIGTERM
        assert not lives(pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_scheduler_that_ends_a_watched_job_gets_the_commands_own_end(
    place: Place, tmp_path: Path, number: signal.Signals
) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo saved; exit 5' {name}; echo $$ > {tmp_path}/pid; while :; do sleep 0.05; done"
    with place.started("sh", "-c", script) as supervisor:
        pids_in(tmp_path / "pid", 1)
        supervisor.send_signal(number)

        assert supervisor.communicate(timeout=WAIT_LIMIT_S)[0] == b"saved\n"
        assert supervisor.returncode == 5


def test_command_has_a_session_of_its_own_unless_it_is_to_stay_in_the_foreground(place: Place) -> None:
    show = "import os; print(os.getsid(0) == os.getpid(), os.getsid(0) == os.getsid(os.getppid()))"

    alone = place.run(sys.executable, "-c", show)
    foreground = place.run(sys.executable, "-c", show, options=["--foreground"])

    assert alone.stdout == b"True False\n"
    assert foreground.stdout == b"False True\n"


COUNTS_INTERRUPTS = """\
import signal, sys, time
count = 0
def interrupted(number, frame):
    global count
    count += 1
signal.signal(signal.SIGINT, interrupted)
print("ready", flush=True)
while not count:
    time.sleep(0.02)
time.sleep(0.5)
print("interrupted", count, flush=True)
"""


def test_interrupt_from_the_terminal_comes_once_in_the_foreground(place: Place) -> None:
    """The terminal sends it to the supervisor and to the command."""
    ours, theirs = os.openpty()
    words = place.words([sys.executable, "-c", COUNTS_INTERRUPTS], ["--foreground"])
    supervisor = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *words], env=place.environment, stdin=theirs, stdout=subprocess.PIPE
    )
    assert supervisor.stdout is not None
    assert supervisor.stdout.readline() == b"ready\n"

    os.write(ours, b"\x03")

    assert supervisor.stdout.readline() == b"interrupted 1\n"
    assert supervisor.wait(WAIT_LIMIT_S) == 0
    supervisor.stdout.close()
    os.close(ours)
    os.close(theirs)


def test_no_core_files_of_a_job_that_may_be_stopped_unless_asked_for(place: Place) -> None:
    import resource

    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    show = "import resource; print(resource.getrlimit(resource.RLIMIT_CORE)[0])"
    soft = hard

    def allowed() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))

    watched = place.run(sys.executable, "-c", show, preexec_fn=allowed)
    managed = place.run(sys.executable, "-c", show, options=["--in-place"], preexec_fn=allowed)
    with_cores = place.run(sys.executable, "-c", show, options=["--in-place", "--core"], preexec_fn=allowed)

    assert watched.stdout == f"{soft}\n".encode()
    assert managed.stdout == b"0\n"
    assert with_cores.stdout == f"{soft}\n".encode()


def test_nothing_of_a_run_that_ended_well_stays_behind(place: Place) -> None:
    assert place.run("true").returncode == 0

    [own] = place.folder.iterdir()
    assert list(own.iterdir()) == []


def test_many_of_one_command_run_beside_each_other(place: Place, tmp_path: Path) -> None:
    script = f"echo $$ >> {tmp_path}/pids; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; exit 11"
    with place.started("sh", "-c", script) as one, place.started("sh", "-c", script) as two:
        wait_until(lambda: len(pids_in(tmp_path / "pids", 2)) == 2, "both run")
        (tmp_path / "go").touch()

        assert (one.wait(WAIT_LIMIT_S), two.wait(WAIT_LIMIT_S)) == (11, 11)
