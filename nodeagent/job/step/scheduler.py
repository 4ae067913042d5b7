"""Asks Slurm which nodes the job has, and starts its steps. It decides nothing.

A controller that does not answer is asked again, for as long as it takes: it may be started anew, and the job
has its nodes all the same.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from nodeagent.job.shell.messages import print_message
from nodeagent.job.step import slurm
from nodeagent.job.step.model import Allocated

ANSWER_LIMIT_S: Final = 30.0
LONGEST_PAUSE_S: Final = 10.0
_UNKNOWN_JOB: Final = "Invalid job id"
"""What squeue says of a job that it has forgotten: slurm_errno.h, ESLURM_INVALID_JOB_ID."""


class Scheduler:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._job = environment[slurm.JOB_VARIABLE]
        self._environment = slurm.environment(environment)
        self._names = ("", "")

    def allocated(self, pause: Callable[[float], bool]) -> Allocated | None:
        """``pause`` waits that long, and is true where somebody wants the loop to end: then None."""
        seconds = 0.5
        has_printed = False
        while True:
            try:
                return self._asked()
            except slurm.NoAnswer as error:
                if not has_printed:
                    print_message(f"{error}; it is asked again until it answers")
                has_printed = True
            if pause(seconds):
                return None
            seconds = min(2 * seconds, LONGEST_PAUSE_S)

    def start(self, nodes: Sequence[str], command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Raises ``OSError``."""
        words = slurm.srun(nodes, command)
        return subprocess.Popen(words, env=self._environment, start_new_session=True)

    def _asked(self) -> Allocated:
        state, abbreviated = slurm.state_and_list(self._output(slurm.asks(self._job)), self._job)
        if abbreviated != self._names[0]:  # it seldom changes
            self._names = abbreviated, self._output(slurm.names(abbreviated)) if abbreviated else ""
        return slurm.allocated(state, self._names[1])

    def _output(self, words: Sequence[str]) -> str:
        try:
            done = subprocess.run(
                words,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=ANSWER_LIMIT_S,
                check=False,
            )
        except OSError as error:
            raise slurm.NoAnswer(f"{words[0]}: {error.strerror}") from error
        except subprocess.TimeoutExpired as error:
            raise slurm.NoAnswer(f"{words[0]} has not answered within {ANSWER_LIMIT_S:g} s") from error
        if done.returncode == 0:
            return done.stdout
        if _UNKNOWN_JOB in done.stderr:
            return ""
        said = " ".join(done.stderr.split()) or f"status {done.returncode}"
        raise slurm.NoAnswer(f"{words[0]}: {said}")
