"""What a GPU does not answer, in words: nobody sees from outside what it is not judged by.

    failed, or refused though it was answered before ──lasting──> attributes and readings of the GPU

What comes and goes from one poll to the next is not shown, so that the GPU is not described anew each time.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nodeagent.drivers.nvidia.baseline import Question
from nodeagent.drivers.nvidia.calls import name_of, words_of

LASTING: Final = 3
"""So many slow polls one after the other."""

MAX_TEXT: Final = 250

QUESTIONS: Final = "unanswered"
CODES: Final = "unjudged"
"""The attributes' keys; their readings have the same names."""


class Lasting:
    """Of things that are seen poll by poll, those that last. Pure."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._polls: dict[str, int] = {}

    def see(self, now: Mapping[str, str]) -> Mapping[str, str]:
        """Each with what is said of it."""
        for name in {*now, *self._shown, *self._polls}:
            if (name in now) == (name in self._shown):
                self._polls.pop(name, None)
                continue
            self._polls[name] = self._polls.get(name, 0) + 1
            if self._polls[name] < LASTING:
                continue
            del self._polls[name]
            if name in now:
                self._shown[name] = now[name]
            else:
                del self._shown[name]
        return self._shown


class Unanswered:
    """Those of one GPU. ``attributes`` and ``readings`` are what is shown of them."""

    def __init__(self) -> None:
        self.attributes: Mapping[str, str] = {}
        self.readings: Mapping[str, float] = {}
        self._questions = Lasting()
        self._codes = Lasting()

    def see(self, questions: Mapping[Question, int], codes: Iterable[str]) -> bool:
        """At each slow poll: questions with NVML's number, and codes that cannot be judged. Whether what is
        shown has changed.
        """
        asked = self._questions.see({words_of(each): name_of(number) for each, number in questions.items()})
        judged = self._codes.see(dict.fromkeys(codes, ""))
        before, self.attributes = self.attributes, _attributes(asked, sorted(judged))
        self.readings = {
            QUESTIONS: float(len(asked)),
            **{f"{CODES}.{code}": 1.0 for code in judged},
        }
        return before != self.attributes


def _attributes(questions: Mapping[str, str], codes: Iterable[str]) -> dict[str, str]:
    said = [f"{words} {answer}" for words, answer in sorted(_together(questions).items())]
    found = {}
    if said:
        found[QUESTIONS] = _cut(said)
    if names := ",".join(codes):
        found[CODES] = names
    return found


def _together(questions: Mapping[str, str]) -> dict[str, str]:
    """The same question about several links as one."""
    numbers: dict[tuple[str, str], list[str]] = {}
    for words, answer in questions.items():
        name, _, about = words.partition("/")
        numbers.setdefault((name, answer), []).append(about)
    return {_about(name, about): answer for (name, answer), about in numbers.items()}


def _about(name: str, about: Sequence[str]) -> str:
    if len(about) > 1:
        return f"{name} (x{len(about)})"
    return f"{name}/{about[0]}" if about[0] else name


def _cut(said: list[str]) -> str:
    text = ", ".join(said)
    shown = len(said)
    while len(text) > MAX_TEXT:
        shown -= 1
        text = ", ".join([*said[:shown], f"and {len(said) - shown} more"])
    return text
