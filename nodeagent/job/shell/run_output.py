"""Where the streams of one run go, if not to those that the supervisor has. A value; it opens nothing."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

STDIN: Final = 0
STDOUT: Final = 1
STDERR: Final = 2


@dataclass(frozen=True, slots=True)
class RunOutput:
    """Where the streams of one run go. ``descriptors``: of the opened file by that of the stream, to be
    closed once the command has them. ``copied``: the file of each, and its size before the run.
    """

    descriptors: Mapping[int, int] = field(default_factory=dict)
    copied: Mapping[int, tuple[Path, int]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def errors(self) -> Path | None:
        found = self.copied.get(STDERR)
        return None if found is None else found[0]

    def close(self) -> None:
        for each in self.descriptors.values():
            os.close(each)
