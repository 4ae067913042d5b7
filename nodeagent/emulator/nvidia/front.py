"""A library in front of another ``libnvidia-ml.so.1``, a vendor's or ours: it changes single answers.

    directory/libnvidia-ml.so.1    the front, which a program is to load
    directory/library              the path of the library behind it
    directory/answers              what is changed, a line each; read again while programs use it

It knows no GPU: each line names a function of NVML, and a GPU by its index. ``lines.c`` says what a line
may be.
"""

import ctypes
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from nodeagent.emulator import build
from nodeagent.emulator.shared.fields import FieldError

LIBRARY: Final = "libnvml-front.so"
FRONT: Final = "libnvidia-ml.so.1"
ANSWERS: Final = "answers"
BEHIND: Final = "library"
MAX_BYTES: Final = 65_536


class Front:
    """That of a directory. ``path`` is the library to load."""

    def __init__(self, directory: Path) -> None:
        """Raises ``FieldError`` where there is none."""
        self.directory = directory
        self.path = directory / FRONT
        if not (self.path.exists() and (directory / BEHIND).exists()):
            raise FieldError(f"{directory}: no front is there; make one with nodeagent emulator front start")
        self._check = ctypes.CDLL(str(build.build(names=[LIBRARY])[0])).front_check
        self._check.restype = ctypes.c_char_p

    @classmethod
    def create(cls, directory: Path, library: Path) -> "Front":
        """One in front of ``library``, which changes nothing yet. Raises ``FieldError``, ``BuildFailed`` and
        ``OSError``.
        """
        behind = library.absolute()
        if not behind.is_file():
            raise FieldError(f"{library}: no such library")
        directory.mkdir(parents=True, exist_ok=True)
        if behind.resolve() == (directory / FRONT).resolve():
            raise FieldError(f"{library}: it is the front itself; name the library that is to be behind it")
        (built,) = build.build(names=[LIBRARY])
        # A library that is mapped somewhere must not change under it: a new file, not new bytes.
        fresh = directory / f".{FRONT}"
        shutil.copyfile(built, fresh)
        fresh.replace(directory / FRONT)
        _write(directory / BEHIND, f"{behind}\n")
        _write(directory / ANSWERS, "")
        return cls(directory)

    @property
    def lines(self) -> list[str]:
        """Those in force, as they were written."""
        return (self.directory / ANSWERS).read_text().splitlines()

    def change(self, lines: Iterable[str]) -> None:
        """From now on these. Raises ``FieldError`` that names the line that is wrong; those before stay
        then.
        """
        text = "".join(f"{line}\n" for each in lines for line in each.splitlines())
        if len(text.encode()) >= MAX_BYTES:
            raise FieldError(f"answers: less than {MAX_BYTES} bytes are right, not {len(text.encode())}")
        if "\0" in text:
            raise FieldError("answers: text is right, not a zero byte")
        if wrong := self._check(text.encode()).decode(errors="replace"):
            raise FieldError(f"answers: {wrong}")
        _write(self.directory / ANSWERS, text)

    def add(self, lines: Iterable[str]) -> None:
        """These too; where two lines are about one answer, the first is in force."""
        self.change([*lines, *self.lines])

    def clear(self) -> None:
        """Nothing is changed any more."""
        self.change([])


def _write(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text)
    fresh.replace(path)
