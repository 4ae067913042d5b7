"""What the files of a job's output cost, and the hook that notes the errors of its Python programs.

A program writes 200 MB to its standard error, which is a pipe to a reader: alone, through ``tee``, and below
a supervisor that keeps it (``--errors``). The time is the program's own, from its first byte to its last, and
that until the reader has all.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from nodeagent.job.shell.error_folder import ErrorFolder
from tests.bench.job_run import environment, job_run
from tests.bench.shared.daemon import scratch
from tests.bench.shared.figures import Figure, median, spread

TITLE = "the output of a job, and its error hook"
ROUNDS = 9
STARTS = 41
MEGABYTES = 200
BUDGET_HOOK_S = 0.005
BUDGET_RATIO = 1.0
READ_BYTES = 1 << 20

_WRITES = f"""\
import os, sys, time
line = b'x' * 99 + b'\\n'
piece = line * 640
begun = time.monotonic()
for _ in range({MEGABYTES} * 1_000_000 // len(piece)):
    left = piece
    while left:
        left = left[os.write(2, left):]
print(time.monotonic() - begun)
"""


def run() -> Iterator[Figure]:
    with scratch() as folder:
        yield from _output(folder)
    with scratch() as folder:
        yield _hook(folder)


def _output(folder: Path) -> Iterator[Figure]:
    writes = (sys.executable, "-c", _WRITES)
    teed = ("bash", "-c", f'exec "$0" -c "$1" 2> >(exec tee {folder}/tee >&2)', sys.executable, _WRITES)
    kept = (*job_run(folder, "--errors", str(folder / "errors")), "--", *writes)
    alone: list[tuple[float, float]] = []
    by_tee: list[tuple[float, float]] = []
    by_us: list[tuple[float, float]] = []
    for _ in range(ROUNDS + 1):
        for words, found in ((writes, alone), (teed, by_tee), (kept, by_us)):
            found.append(_took_s(folder, words))
            for name in ("tee", "errors"):
                (folder / name).unlink(missing_ok=True)
    for place, what in enumerate(("the program writes", "its reader has")):
        of_us, of_tee, of_none = (
            median([each[place] for each in found[1:]]) for found in (by_us, by_tee, alone)
        )
        yield Figure(
            name=f"{what} {MEGABYTES} MB: ratio to `| tee`",
            value=of_us / of_tee,
            unit="",
            budget=BUDGET_RATIO,
            note=f"({of_us:.2f} s; by tee {of_tee:.2f} s; with neither {of_none:.2f} s)",
        )


def _took_s(folder: Path, words: Sequence[str]) -> tuple[float, float]:
    """Of the program, and of the reader of its standard error."""
    begun_s = time.monotonic()
    with subprocess.Popen(
        words,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as started:
        assert started.stderr is not None
        assert started.stdout is not None
        while os.read(started.stderr.fileno(), READ_BYTES):
            pass
        return float(started.stdout.read()), time.monotonic() - begun_s


def _hook(folder: Path) -> Figure:
    errors = ErrorFolder(folder / "errors")
    plain = environment(folder)
    hooked = {**plain, **errors.begin(plain)}
    without: list[float] = []
    with_hook: list[float] = []
    for _ in range(STARTS):
        without.append(_start_s(plain))
        with_hook.append(_start_s(hooked))
    added = [ours - alone for ours, alone in zip(with_hook[1:], without[1:], strict=True)]
    return Figure(
        name="the hook adds to the start of a Python program",
        value=median(added),
        unit="s",
        budget=BUDGET_HOOK_S,
        peer=median(without[1:]),
        peer_name="python -c pass",
        note=spread(added),
    )


def _start_s(env: Mapping[str, str]) -> float:
    begun_s = time.monotonic()
    subprocess.run((sys.executable, "-c", "pass"), env=env, check=True)
    return time.monotonic() - begun_s
