"""A recorded series as JSON lines: a header, then one line for each sample with the beats since the last.

    {"name": "...", "T_min": 30, "period_s": 10, "kind": "training"}
    {"t_s": 10, "ranks": [{"pid": 7, "ppid": 1, ...}], "chips": [{"name": "npu0", ...}], "beats": [...],
     "times": [{"t_s": 9, "step": 3, "compute_s": 0.8, "rank": 0}]}

``ranks`` holds all processes of the tree. What a live run keeps is the same. It opens no file, and a key that
it does not know is an error: a series that was read in part would be judged wrongly.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nodeagent.job.codec import CodecError, from_plain, line_of, object_in, to_plain
from nodeagent.job.sample import Beat, ChipSample, ProcessSample, RunSample, StepTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """``T_min``: the hang time in minutes."""

    name: str
    T_min: float
    period_s: float = 10.0
    kind: str = "training"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesRow:
    sample: RunSample
    beats: tuple[Beat, ...] = ()
    times: tuple[StepTime, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSeries:
    header: Header
    rows: tuple[SeriesRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A row as it is in the file."""

    t_s: float
    ranks: tuple[ProcessSample, ...] = ()
    chips: tuple[ChipSample, ...] = ()
    beats: tuple[Beat, ...] = ()
    times: tuple[StepTime, ...] = ()


def header_line(header: Header) -> str:
    """With its newline, as ``row_line``."""
    return line_of(to_plain(header, sparse=True))


def row_line(row: SeriesRow) -> str:
    sample = row.sample
    line = _Line(t_s=sample.t_s, ranks=sample.processes, chips=sample.chips, beats=row.beats, times=row.times)
    return line_of(to_plain(line, sparse=True))


def read(lines: Iterable[str], file: str) -> SampleSeries:
    """``file`` is its name for messages. Raises ``CodecError``, which names file, line and field."""
    header: Header | None = None
    rows = list[SeriesRow]()
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            if header is None:
                header = from_plain(Header, object_in(text), strict=True)
            else:
                rows.append(_row(text, rows))
        except CodecError as error:
            raise CodecError(f"{file}: line {number}: {error}") from error
    if header is None:
        raise CodecError(f"{file}: empty; the first line is the header with name, T_min, period_s and kind")
    return SampleSeries(header=header, rows=tuple(rows))


def _row(text: str, before: Sequence[SeriesRow]) -> SeriesRow:
    line = from_plain(_Line, object_in(text), strict=True)
    if before and line.t_s <= before[-1].sample.t_s:
        raise CodecError(f"t_s: greater than {before[-1].sample.t_s:g}, not {line.t_s:g}")
    sample = RunSample(t_s=line.t_s, processes=line.ranks, chips=line.chips)
    return SeriesRow(sample=sample, beats=line.beats, times=line.times)
