"""Reads where a run's progress shows: the file, or the names, that ``--progress`` names.

They lie on shared storage, which may not answer for minutes: a thread reads, the loop takes what is there.
What the numbers mean is judged elsewhere.
"""

import glob
import threading
from collections.abc import Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

from nodeagent.job.counts.progress import ByFile, ByNames, Look, number_in, number_of, with_baseline
from nodeagent.job.model import Counts
from nodeagent.job.shell.disk import regular_files
from nodeagent.job.shell.messages import print_message

FIRST_LOOK_S: Final = 10.0
"""So long a run waits for what lay there before it. A store that takes longer is looked at later."""

MAX_TEXT_BYTES: Final = 4096
MAX_NAMES: Final = 10_000

_WILD: Final = "*?["

Seen = str | None | Mapping[str, Look]


class ProgressReader:
    """Reads one ``--progress``: a path, or a pattern where it holds one of ``*?[``."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._is_pattern = any(each in path for each in _WILD)
        self._wanted: SimpleQueue[int] = SimpleQueue()
        self._seen: SimpleQueue[tuple[int, Seen]] = SimpleQueue()
        self._judge: ByFile | ByNames | None = None
        self._look = 0
        self._is_looking = False
        self._refused: str | None = None
        threading.Thread(target=self._read, daemon=True).start()

    def baseline(self, counts: Counts) -> Counts:
        """What lies there already, for a job of which nothing was ever seen."""
        seen = self._first_look()
        if isinstance(seen, str):
            return with_baseline(counts, [number_in(seen)])
        return with_baseline(counts, map(number_of, seen or {}))

    def run_begins(self) -> None:
        """Notes what lies there, none of which is this run's."""
        seen = self._first_look()
        if self._is_pattern:
            self._judge = ByNames(seen if isinstance(seen, Mapping) else {})
        else:
            self._judge = ByFile(seen if isinstance(seen, str) else None)

    def run_ended(self) -> None:
        """What is found from now on may be half written."""
        self._judge = None

    def next_number(self) -> int | None:
        """The number of a new checkpoint that was found since the last call; looks again."""
        found = None
        for look, seen in self._take():
            if look == self._look and self._judge is not None:
                found = self._judged(seen)
        if not self._is_looking:
            self._begin_look()
        return found

    def _judged(self, seen: Seen) -> int | None:
        if isinstance(self._judge, ByNames):
            return self._judge.looked(seen if isinstance(seen, Mapping) else {})
        assert self._judge is not None
        return self._judge.looked(seen if isinstance(seen, str) else None)

    def _first_look(self) -> Seen:
        self._begin_look()
        try:
            while True:
                look, seen = self._seen.get(timeout=FIRST_LOOK_S)
                if look == self._look:
                    self._is_looking = False
                    return seen
        except Empty:
            return None

    def _begin_look(self) -> None:
        self._look += 1
        self._is_looking = True
        self._wanted.put(self._look)

    def _take(self) -> list[tuple[int, Seen]]:
        taken: list[tuple[int, Seen]] = []
        while True:
            try:
                taken.append(self._seen.get_nowait())
            except Empty:
                break
        self._is_looking = self._is_looking and all(look != self._look for look, _ in taken)
        return taken

    # ------------------------------------------------------------------ in the thread

    def _read(self) -> None:
        while True:
            look = self._wanted.get()
            self._seen.put((look, self._names() if self._is_pattern else self._text()))

    def _text(self) -> str | None:
        try:
            start = regular_files.read_start(self._path, MAX_TEXT_BYTES, is_own=False)
        except regular_files.NotRegularError as error:
            self._refuse(error)
            return None
        except OSError:  # not there yet, or just being replaced
            return None
        return start.decode("utf-8", "replace")

    def _refuse(self, error: OSError) -> None:
        """Printed once, and again only where it is another thing by then."""
        if error.strerror != self._refused:
            self._refused = error.strerror
            print_message(f"--progress: {self._path}: {error.strerror}; no progress is seen")

    def _names(self) -> Mapping[str, Look]:
        names = sorted(glob.glob(self._path, recursive=True))[-MAX_NAMES:]  # noqa: PTH207 # absolute ones, too
        return {name: look for name in names if (look := _look_of(name)) is not None}


def _look_of(name: str) -> Look | None:
    size = changed_ns = 0
    try:
        for file in (Path(name), *Path(name).rglob("*")):
            found = file.stat()
            size += found.st_size
            changed_ns = max(changed_ns, found.st_mtime_ns)
    except OSError:  # it is being replaced: looked at again
        return None
    return Look(size=size, changed_ns=changed_ns)
