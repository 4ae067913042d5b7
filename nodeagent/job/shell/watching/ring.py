"""The samples of a run, as ``job replay`` reads them: the newest hour and the one before, a file each."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nodeagent.job.shell.disk import regular_files
from nodeagent.job.shell.messages import print_message

if TYPE_CHECKING:
    from nodeagent.job.hang.settings import Settings
    from nodeagent.job.sample import Beat, Sample

_HOUR_S: Final = 3600.0


class Ring:
    """``files``: the oldest first. Where they cannot be written, a message says so once; the job goes on."""

    def __init__(self, folder: Path | None) -> None:
        names = ("samples.1.jsonl", "samples.jsonl")
        self.files = () if folder is None else tuple(folder / name for name in names)
        self._since_s: float | None = None
        self._is_broken = False

    def begin(self) -> None:
        """A new run begins: what the one before measured says nothing of it."""
        self._since_s = None
        for file in self.files:
            with suppress(OSError):
                file.unlink(missing_ok=True)

    def keep(self, settings: Settings, sample: Sample, beats: tuple[Beat, ...]) -> None:
        """``beats``: those since the sample before."""
        from nodeagent.job.series import Row, row_line

        if not self.files:
            return
        try:
            self._make_place(settings, sample.t_s)
            self._write(row_line(Row(sample=sample, beats=beats)), os.O_APPEND)
            self._is_broken = False
        except OSError as error:
            if not self._is_broken:
                print_message(f"samples are not kept: {error}")
            self._is_broken = True

    def _make_place(self, settings: Settings, t_s: float) -> None:
        from nodeagent.job.series import Header, header_line

        if self._since_s is not None and t_s - self._since_s < _HOUR_S:
            return
        newest = self.files[-1]
        if self._since_s is not None:
            newest.replace(self.files[0])
        header = Header(
            name="live", T_min=settings.hang_time_s / 60, period_s=settings.period_s, kind=settings.kind
        )
        self._write(header_line(header), os.O_TRUNC)
        self._since_s = t_s

    def _write(self, text: str, flag: int) -> None:
        """Raises ``OSError``."""
        descriptor = regular_files.open_own(self.files[-1], os.O_WRONLY | os.O_CREAT | flag, 0o666)
        with open(descriptor, "w", encoding="ascii") as opened:  # noqa: PTH123 # of a descriptor
            opened.write(text)
