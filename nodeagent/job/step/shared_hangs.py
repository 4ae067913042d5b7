"""What the supervisor of one node reports of a hang to all others of its step, and learns from all of them.

With each sample its word goes into a file, and the loop's finding is read. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodeagent.job.hang.settings import Settings
from nodeagent.job.hang.watch import HangWatch
from nodeagent.job.inputs import Hung
from nodeagent.job.shell.messages import print_message
from nodeagent.job.step.folder import Folder
from nodeagent.job.step.whole_job_hang import NodeWord


class SharedHangs:
    """``run`` is that of the step."""

    def __init__(self, folder: Folder, run: int, node: str) -> None:
        self._folder = folder
        self._run = run
        self._node = node
        self._number = 0
        self._newest = 0
        self._is_broken = False

    def exchanged(self, watch: HangWatch, settings: Settings, run: int, now_s: float) -> Sequence[Hung]:
        """What is new of all nodes, for the supervisor's own ``run``. Where this node has found a hang
        itself, that of all adds nothing.
        """
        self._put_word(watch, settings, now_s)
        finding = self._folder.finding(self._run)
        if finding is None or finding.number <= self._newest:
            return ()
        self._newest = finding.number
        if watch.has_confirmed:
            return ()
        return (
            Hung(
                run=run,
                what=finding.what,
                why=finding.why,
                since_s=round(finding.since_s, 3),
                acts=finding.acts,
            ),
        )

    def _put_word(self, watch: HangWatch, settings: Settings, now_s: float) -> None:
        seen = watch.seen(now_s)
        self._number += 1
        word = NodeWord(
            number=self._number,
            period_s=settings.period_s,
            hang_time_s=settings.hang_time_s,
            flat_s=seen.flat_s,
            idle_high_s=seen.idle_high_s,
            acts=seen.acts,
        )
        try:
            self._folder.put_word(self._run, self._node, word)
            self._is_broken = False
        except OSError as error:
            if not self._is_broken:
                print_message(
                    f"{error.filename}: {error.strerror}; the other nodes do not know how the chips here are"
                )
            self._is_broken = True
