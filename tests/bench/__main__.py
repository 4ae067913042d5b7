"""``python -m tests.bench [NAME...] [-o json]``: run the benchmarks and print their figures.

It judges nothing: the exit status says whether they could be run. What needs root says so and is left out.
"""

import importlib
import json
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from tests.bench.shared import rest
from tests.bench.shared.figures import CannotRun, Figure

BENCHMARKS: Final = (
    "idle",
    "interpreter",
    "job_run",
    "job_output",
    "job_stop",
    "job_recovery",
    "job_step",
    "job_torch",
    "fleet",
    "start",
    "kernel_line",
    "callback",
    "flood",
    "matching",
    "replay",
    "commits",
    "subscribers",
)
"""Each is a module here with ``TITLE`` and ``run() -> Iterator[Figure]``. What measures memory comes first,
before this process maps the daemon's own libraries."""


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(BENCHMARKS))
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="json: one a line.")
def main(names: tuple[str, ...], output: str) -> None:
    """Print each budget's figure, the ratio to the budget (at most 1 keeps it) and to a floor or peer."""
    _say(f"{platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before the start")
    for name in names or BENCHMARKS:
        benchmark = importlib.import_module(f"tests.bench.{name}")
        _say(f"after a rest this machine computes {rest.slowdown():.1f} x as long")
        begun_s = time.monotonic()
        try:
            if output == "text":
                click.echo(f"\n{name}: {benchmark.TITLE}")
            _print(name, benchmark.run(), output)
        except CannotRun as reason:
            _say(f"{name} left out: {reason}")
        _say(f"{name} took {time.monotonic() - begun_s:.0f} s, load {os.getloadavg()[0]:.1f} at its end")


def _print(name: str, figures: Iterator[Figure], output: str) -> None:
    for figure in figures:
        click.echo(figure.as_line() if output == "text" else json.dumps(figure.as_json(name)))


def _say(text: str) -> None:
    """Beside the figures, so that JSON stays JSON."""
    click.echo(f"# {text}", err=True)


if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parents[2])
    main(prog_name="python -m tests.bench")
