"""Whether a run makes progress: the number of the newest checkpoint that is whole, as far as can be told.

Its sources: a file that holds a number (Megatron's ``latest_checkpointed_iteration.txt``, DeepSpeed's
``latest``), the names of checkpoints, or beats. What is looked at comes in, with what it looks like; the
answer is a number, or None where nothing new is known. None changes nothing.

A run that is killed may leave a checkpoint half written. So a name counts only once it is seen twice alike
while the run lives, or another came after it; and never where it lay there, as it is now, before the run.
After the end of a run, do not look.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Final

from nodeagent.job.model import Counts
from nodeagent.job.sample import Beat

_NUMBER: Final = re.compile(r"\d+")
_MAX_DIGITS: Final = 18
_UNFINISHED: Final = re.compile(
    r"(^[.~])|(~$)|((^|[._-])(tmp|temp|part|partial|incomplete|lock)([._-]|\d*$))", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
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

    def __init__(self, before: Mapping[str, Look]) -> None:
        self._before = dict(before)
        self._last: Mapping[str, Look] = {}
        self._rising = _Rising()

    def looked(self, now: Mapping[str, Look]) -> int | None:
        made = {name: look for name, look in now.items() if self._before.get(name) != look}
        numbers = {name: number_of(name) for name in made}
        newest = max((each for each in numbers.values() if each is not None), default=None)
        whole = [
            number
            for name, number in numbers.items()
            if number is not None and (number != newest or self._last.get(name) == made[name])
        ]
        self._last = made
        return self._rising.rise(max(whole, default=None))


class ByBeats:
    """What the program says of itself: checkpoints; steps where it reports no checkpoint."""

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
    """A job of which nothing was ever seen begins with what lies there: its first runs made it, or nobody."""
    known = [each for each in numbers if each is not None]
    return replace(counts, best=max(known)) if counts.best is None and known else counts
