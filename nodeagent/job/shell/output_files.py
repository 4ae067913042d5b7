"""The files that the streams of a command go to by choice: ``--logs`` by run, ``--errors`` for all runs.

With ``--logs DIR`` run N writes ``run-N.out`` and ``run-N.err``; torchrun also writes a file for each rank
below ``run-N``. A file of that name that an earlier placement has left is renamed, never written over. The
newest runs are kept. A file that cannot be opened is reported, and the stream stays as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from nodeagent.job.shell import files
from nodeagent.job.shell.run_output import STDERR, STDOUT, RunOutput
from nodeagent.job.shell.standard_error import print_message

_OF_A_RUN: Final = re.compile(r"(run-\d+(?:\.\d+)?)(?:\.out|\.err)?")

_TORCH_LOGS: Final = "PET_LOG_DIR"
_TORCH_TEE: Final = "PET_TEE"
_OF_TORCH: Final = (_TORCH_LOGS, _TORCH_TEE, "PET_REDIRECTS")
"""torchrun takes an option that is not given from the variable ``PET_`` + its name (``env`` of
torch/distributed/argparse_util.py): ``--log-dir``, ``--tee`` and ``--redirects`` of
torch/distributed/run.py. ``--tee 3`` writes both streams of each rank to a file and to the console."""

_BOTH_STREAMS: Final = "3"


class OutputFiles:
    """``logs``: a folder, made if it is not there. ``errors``: a file. ``kept``: so many runs of ``logs``."""

    def __init__(self, logs: Path | None, errors: Path | None, kept: int) -> None:
        self._logs = logs
        self._errors = errors
        self._kept = kept

    @staticmethod
    def of(logs: str, errors: str, kept: int, of_own: str) -> OutputFiles:
        """As the command line names them. ``of_own``: of several supervisors that have the same command line,
        the name of this one, so that each has files of its own; else "".
        """
        named = f"{errors}.{of_own}" if errors and of_own else errors
        return OutputFiles(Path(logs, of_own) if logs else None, Path(named) if named else None, kept)

    def open(self, run: int, given: Mapping[str, str]) -> RunOutput:
        """The files of that run. ``given`` is the environment of the supervisor."""
        wanted: dict[int, Path] = {}
        added: dict[str, str] = {}
        if self._logs is not None and self._make_place(self._logs, run):
            name = f"run-{run}"
            wanted = {STDOUT: self._logs / f"{name}.out", STDERR: self._logs / f"{name}.err"}
            if not any(each in given for each in _OF_TORCH):
                added = {_TORCH_LOGS: str(self._logs / name), _TORCH_TEE: _BOTH_STREAMS}
        elif self._errors is not None:
            wanted = {STDERR: self._errors}
        opened: dict[int, int] = {}
        copied: dict[int, tuple[Path, int]] = {}
        for stream, path in wanted.items():
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                opened[stream] = files.open_named(path, flags, 0o666)
                copied[stream] = (path.absolute(), os.fstat(opened[stream]).st_size)
            except OSError as error:
                print_message(f"{path}: {error.strerror}; run {run} writes nothing there")
        return RunOutput(opened, copied, added if opened else {})

    def _make_place(self, logs: Path, run: int) -> bool:
        try:
            logs.mkdir(parents=True, exist_ok=True)
            _move_aside(logs, f"run-{run}")
            _remove_old(logs, self._kept - 1)
        except OSError as error:
            print_message(f"{error.filename}: {error.strerror}; the output of run {run} is not kept there")
            return False
        return True


def _move_aside(logs: Path, name: str) -> None:
    """What an earlier placement has left under the name of this run."""
    found = [each for each in logs.iterdir() if _name_of(each) == name]
    if not found:
        return
    taken = {_name_of(each) for each in logs.iterdir()}
    number = next(each for each in range(1, len(taken) + 2) if f"{name}.{each}" not in taken)
    for each in found:
        each.rename(logs / each.name.replace(name, f"{name}.{number}", 1))


def _remove_old(logs: Path, kept: int) -> None:
    """All but the newest runs."""
    runs: dict[str, list[Path]] = {}
    for each in logs.iterdir():
        if name := _name_of(each):
            runs.setdefault(name, []).append(each)
    newest = sorted(runs.values(), key=lambda paths: max(each.lstat().st_mtime_ns for each in paths))
    for paths in newest[: max(0, len(newest) - kept)]:
        for each in paths:
            _remove(each)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        from shutil import rmtree

        rmtree(path)
    else:
        path.unlink()


def _name_of(path: Path) -> str:
    found = _OF_A_RUN.fullmatch(path.name)
    return found[1] if found else ""
