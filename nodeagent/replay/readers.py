"""The kinds of files that hold a log. A new kind is a new row; text has rows of its own (``text_forms``)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from nodeagent.replay import journal, json_log
from nodeagent.replay.kernel_text import PLAIN, KernelText
from nodeagent.replay.log import GivenFile, LogLine
from nodeagent.replay.reading import Peeked, Reports, lines, strictly, without_screen
from nodeagent.replay.text_forms import FORMS
from nodeagent.replay.text_prefixes import is_mark

Read = Callable[[Peeked, Reports, GivenFile], Iterator[LogLine]]


@dataclass(frozen=True, slots=True)
class LogReader:
    """``begins``: whether a file is of this kind whose beginning and whose first line are these."""

    name: str
    example: str
    begins: Callable[[bytes, str], bool]
    read: Read


def _text(file: Peeked, _: Reports, given: GivenFile) -> Iterator[LogLine]:
    return KernelText(given).read_file(file)


def _of_container(file: Peeked, _: Reports, given: GivenFile) -> Iterator[LogLine]:
    text = KernelText(given)
    return text.read(json_log.from_container(lines(file, text.too_long)))


READERS: Final = (
    LogReader(
        "journal-export",
        "__REALTIME_TIMESTAMP=1741662669123456",
        lambda beginning, _: journal.begins_export(beginning),
        journal.read_export,
    ),
    LogReader(
        "journal-verbose",
        "Tue 2025-03-11 03:11:09.123456 UTC [s=8e;i=1;b=aa;m=1;t=6300870b62f80;x=2a]",
        lambda _, first: journal.begins_verbose(first),
        lambda file, reports, given: journal.read_verbose(lines(file, strictly(reports)), reports, given),
    ),
    LogReader(
        "json",
        '{"__REALTIME_TIMESTAMP":"1741662669123456","_TRANSPORT":"kernel","MESSAGE":"message"}',
        lambda _, first: json_log.begins(first),
        lambda file, reports, given: json_log.read(lines(file, strictly(reports)), reports, given),
    ),
    LogReader(
        "container-json",
        '{"log":"[  812.229390] message\\n","stream":"stdout","time":"2025-03-11T03:11:09.123456789Z"}',
        lambda _, first: json_log.is_of_container(first),
        _of_container,
    ),
)
_TEXT: Final = LogReader("text", "", lambda _, __: True, _text)

EXAMPLES: Final = {
    **{form.name: form.example for form in FORMS},
    **{reader.name: reader.example for reader in READERS},
    PLAIN: "message",
}
"""Each form that can be named by hand, with a line of it."""


def reader_of(text: Peeked, only: str | None) -> LogReader:
    """The one of a file's beginning, or the one that is named."""
    if only is not None:
        return next((reader for reader in READERS if reader.name == only), _TEXT)
    first = first_line(text.beginning)
    return next((reader for reader in READERS if reader.begins(text.beginning, first)), _TEXT)


def first_line(beginning: bytes) -> str:
    """The first line that is not empty, as far as the beginning goes; "" without one."""
    texts = without_screen(beginning).decode("utf-8", "backslashreplace").split("\n")
    return next((text for text in texts if text.strip() and not is_mark(text)), "")
