"""Whether a run makes progress: the number of the newest checkpoint that is whole, as far as can be known.

Its sources: a file that holds a number (Megatron's ``latest_checkpointed_iteration.txt``, DeepSpeed's
``latest``), the names of checkpoints, or beats. ``ByFile``, ``ByNames`` and ``ByBeats`` are pure: what was
read goes in, a number comes out, or None if nothing new is known. ``ProgressReader`` reads, in a thread,
because shared storage may not answer for minutes.

A run that is killed may leave a checkpoint half written. So a name counts only once it is seen twice alike
while the run lives, or another came after it; and never if it was there, as it is now, before the run. Once
nothing of the run is left nobody writes any more: then it is looked at for the last time, and of a run that
ended by itself every name counts.
"""

import glob
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from queue import Empty, SimpleQueue
from typing import Final

from nodeagent.job.model import Counts
from nodeagent.job.sample import Beat
from nodeagent.job.shell import files
from nodeagent.job.shell.standard_error import print_message

_NUMBER: Final = re.compile(r"\d+")
_MAX_DIGITS: Final = 18
_UNFINISHED: Final = re.compile(
    r"(^[.~])|(~$)|((^|[._-])(tmp|temp|part|partial|incomplete|lock)([._-]|\d*$))", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLook:
    """How a name looked: of a directory ``size`` and ``changed_ns`` are over all that it holds."""

    size: int
    changed_ns: int


class _Rising:
    """Reports a number only where it is greater than all before."""

    def __init__(self) -> None:
        self._reported: int | None = None

    def rise(self, number: int | None) -> int | None:
        if number is None or (self._reported is not None and number <= self._reported):
            return None
        self._reported = number
        return number


class ByFile:
    """A file with one number in it. ``before`` is its text before the run, None where it was not there."""

    def __init__(self, before: str | None) -> None:
        self._rising = _Rising()
        self._rising.rise(None if before is None else number_in(before))

    def looked(self, text: str | None) -> int | None:
        """None: it cannot be read."""
        return None if text is None else self._rising.rise(number_in(text))


class ByNames:
    """The names that a pattern matches, and how each looks. ``before`` is what there was before the run."""

    def __init__(self, before: Mapping[str, FileLook]) -> None:
        self._before = dict(before)
        self._last: Mapping[str, FileLook] = {}
        self._rising = _Rising()

    def looked(self, now: Mapping[str, FileLook], *, is_whole: bool = False) -> int | None:
        """``is_whole``: none of them is being written, or was left half written."""
        made = {name: look for name, look in now.items() if self._before.get(name) != look}
        numbers = {name: number_of(name) for name in made}
        newest = max((each for each in numbers.values() if each is not None), default=None)
        whole = [
            number
            for name, number in numbers.items()
            if number is not None and (is_whole or number != newest or self._last.get(name) == made[name])
        ]
        self._last = made
        return self._rising.rise(max(whole, default=None))


class ByBeats:
    """What the program reports: checkpoints; steps where it reports no checkpoint."""

    def __init__(self) -> None:
        self._steps = _Rising()
        self._checkpoints = _Rising()
        self._step: int | None = None
        self._checkpoint: int | None = None

    def beaten(self, beat: Beat) -> None:
        """The first step is where the run begins, and nothing that it has done."""
        if beat.step is not None:
            if self._step is None:
                self._steps.rise(beat.step)
            self._step = beat.step
        if beat.checkpoint is not None:
            self._checkpoint = beat.checkpoint

    def looked(self) -> int | None:
        """Ask for it as often as samples are taken: each answer is written to the journal."""
        if self._checkpoint is None:
            return self._steps.rise(self._step)
        return self.checkpoint()

    @property
    def reports_checkpoints(self) -> bool:
        return self._checkpoint is not None

    def checkpoint(self) -> int | None:
        """Only a checkpoint: there are few of them."""
        return self._checkpoints.rise(self._checkpoint)


def number_in(text: str) -> int | None:
    """The one number of a text; None where there is none, or several."""
    found = _NUMBER.findall(text)
    return int(found[0]) if len(found) == 1 and len(found[0]) <= _MAX_DIGITS else None


def number_of(name: str) -> int | None:
    """The last number of the last part of a path that has one, without its suffix: ``a/step-300.pt`` is 300.

    None also of what is by its name not finished yet.
    """
    path = PurePath(name)
    if any(_UNFINISHED.search(part) for part in path.parts[-2:] if part not in ("/", ".", "..")):
        return None
    stem = path.stem if re.search("[A-Za-z]", path.suffix) else path.name
    for part in (stem, *reversed(path.parts[:-1])):
        found = _NUMBER.findall(part)
        if found and len(found[-1]) <= _MAX_DIGITS:
            return int(found[-1])
    return None


def with_baseline(counts: Counts, numbers: Iterable[int | None]) -> Counts:
    """A job without any count begins with the checkpoints that are there: only its first runs can have made
    them.
    """
    known = [each for each in numbers if each is not None]
    return replace(counts, best=max(known)) if counts.best is None and known else counts


LOOK_WITHIN_S: Final = 10.0
"""So long a run waits for what lay there before it, and its end for what it has left. What a store that
takes longer holds is seen later, or not at all.
"""

MAX_TEXT_BYTES: Final = 4096
MAX_NAMES: Final = 10_000

_WILD: Final = "*?["

Seen = str | None | Mapping[str, FileLook]


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
        seen = self._look_now()
        if isinstance(seen, str):
            return with_baseline(counts, [number_in(seen)])
        return with_baseline(counts, map(number_of, seen or {}))

    def run_begins(self) -> None:
        """Notes what lies there, none of which is this run's."""
        seen = self._look_now()
        if self._is_pattern:
            self._judge = ByNames(seen if isinstance(seen, Mapping) else {})
        else:
            self._judge = ByFile(seen if isinstance(seen, str) else None)

    def last_number(self, *, is_whole: bool) -> int | None:
        """Nothing of the run is left. ``is_whole``: it was not killed amid what it wrote."""
        judge = self._judge
        if judge is None:
            return None
        seen = self._look_now()
        self._judge = None
        return self._judged(judge, seen, is_whole=is_whole)

    def next_number(self) -> int | None:
        """The number of a new checkpoint that was found since the last call; looks again."""
        found = None
        for look, seen in self._take():
            if look == self._look and self._judge is not None:
                found = self._judged(self._judge, seen)
        if not self._is_looking:
            self._begin_look()
        return found

    def _judged(self, judge: ByFile | ByNames, seen: Seen, *, is_whole: bool = False) -> int | None:
        if isinstance(judge, ByNames):
            return judge.looked(seen if isinstance(seen, Mapping) else {}, is_whole=is_whole)
        return judge.looked(seen if isinstance(seen, str) else None)

    def _look_now(self) -> Seen:
        self._begin_look()
        try:
            while True:
                look, seen = self._seen.get(timeout=LOOK_WITHIN_S)
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
            start = files.read_start(self._path, MAX_TEXT_BYTES, is_own=False)
        except files.NotRegularError as error:
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

    def _names(self) -> Mapping[str, FileLook]:
        names = sorted(glob.glob(self._path, recursive=True))[-MAX_NAMES:]  # noqa: PTH207 # absolute ones, too
        return {name: look for name in names if (look := _look_of(name)) is not None}


def _look_of(name: str) -> FileLook | None:
    size = changed_ns = 0
    try:
        for file in (Path(name), *Path(name).rglob("*")):
            found = file.stat()
            size += found.st_size
            changed_ns = max(changed_ns, found.st_mtime_ns)
    except OSError:  # it is being replaced: looked at again
        return None
    return FileLook(size=size, changed_ns=changed_ns)
