"""The ways in which one file holds a log. A new way is a new row; text has its own rows (``text.forms``)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from nodeagent.replay import journal_export, journal_verbose, json_log
from nodeagent.replay.kernel_text import PLAIN, KernelText
from nodeagent.replay.log import Given, LogLine
from nodeagent.replay.packing import Peeked
from nodeagent.replay.reading import Reports, lines, strictly, without_screen
from nodeagent.replay.text.forms import FORMS
from nodeagent.replay.text.prefixes import is_mark

Read = Callable[[Peeked, Reports, Given], Iterator[LogLine]]


@dataclass(frozen=True, slots=True)
class Reader:
    """``begins``: whether a file is of this kind whose beginning and whose first line are these."""

    name: str
    example: str
    begins: Callable[[bytes, str], bool]
    read: Read


def _text(file: Peeked, _: Reports, given: Given) -> Iterator[LogLine]:
    return KernelText(given).read_file(file)


def _of_container(file: Peeked, _: Reports, given: Given) -> Iterator[LogLine]:
    text = KernelText(given)
    return text.read(json_log.from_container(lines(file, text.too_long)))


READERS: Final = (
    Reader(
        "journal-export",
        "__REALTIME_TIMESTAMP=1741662669123456",
        lambda beginning, _: journal_export.begins(beginning),
        journal_export.read,
    ),
    Reader(
        "journal-verbose",
        "Tue 2025-03-11 03:11:09.123456 UTC [s=8e;i=1;b=aa;m=1;t=6300870b62f80;x=2a]",
        lambda _, first: journal_verbose.begins(first),
        lambda file, reports, given: journal_verbose.read(lines(file, strictly(reports)), reports, given),
    ),
    Reader(
        "json",
        '{"__REALTIME_TIMESTAMP":"1741662669123456","_TRANSPORT":"kernel","MESSAGE":"message"}',
        lambda _, first: json_log.begins(first),
        lambda file, reports, given: json_log.read(lines(file, strictly(reports)), reports, given),
    ),
    Reader(
        "container-json",
        '{"log":"[  812.229390] message\\n","stream":"stdout","time":"2025-03-11T03:11:09.123456789Z"}',
        lambda _, first: json_log.is_of_container(first),
        _of_container,
    ),
)
_TEXT: Final = Reader("text", "", lambda _, __: True, _text)

EXAMPLES: Final = {
    **{form.name: form.example for form in FORMS},
    **{reader.name: reader.example for reader in READERS},
    PLAIN: "message",
}
"""Each form that can be named by hand, with a line of it."""


def reader_of(text: Peeked, only: str | None) -> Reader:
    """The one of a file's beginning, or the one that is named."""
    if only is not None:
        return next((reader for reader in READERS if reader.name == only), _TEXT)
    first = first_line(text.beginning)
    return next((reader for reader in READERS if reader.begins(text.beginning, first)), _TEXT)


def first_line(beginning: bytes) -> str:
    """The first that says something, as far as the beginning goes; "" if there is none."""
    texts = without_screen(beginning).decode("utf-8", "backslashreplace").split("\n")
    return next((text for text in texts if text.strip() and not is_mark(text)), "")
