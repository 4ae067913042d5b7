"""A defect of the supervisor itself ends no job."""

import signal
import subprocess
import sys
from pathlib import Path

from tests.job.shell.supervised import Place, pids_in
from tests.waiting import WAIT_LIMIT_S

DEFECT = """\
import sys
from nodeagent.job.main import main
from nodeagent.job.watching.watching import Watching
def tick(self, now_ns):
    if self._run:
        raise KeyError("seeded")
Watching.tick = tick
sys.exit(main(sys.argv[1:]))
"""


def test_command_goes_on_gets_its_signals_and_gives_its_status(place: Place, tmp_path: Path) -> None:
    script = f"trap 'exit 21' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.05; done"
    supervisor = subprocess.Popen(
        [sys.executable, "-c", DEFECT, "run", "--", "sh", "-c", script],
        env=place.environment,
        stderr=subprocess.PIPE,
    )
    pids_in(tmp_path / "pid", 1)

    assert supervisor.stderr is not None
    line = supervisor.stderr.readline().decode()
    supervisor.send_signal(signal.SIGTERM)

    assert line.startswith("nodeagent-job: a defect of the supervisor; it only waits for the command now: ")
    assert "KeyError: 'seeded'" in line
    assert supervisor.wait(WAIT_LIMIT_S) == 21
    supervisor.stderr.close()


def test_beat_that_is_not_understood_is_told_once(place: Place) -> None:
    script = (
        "import time; from nodeagent_job import beat; [(beat(phase='x'), time.sleep(0.2)) for _ in range(3)]"
    )

    done = place.run(sys.executable, "-c", script)

    assert done.returncode == 0
    assert done.stderr.decode() == (
        "nodeagent-job: a beat of the program is not understood, which is told once:"
        " phase: one of train, eval, checkpoint, compile, load, not 'x'\n"
    )
