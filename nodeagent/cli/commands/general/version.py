"""``nodeagent version``, and what ``--version`` says."""

import platform
from collections.abc import Iterator
from typing import Any

import click

from nodeagent import __version__
from nodeagent.build import Build, BuildDamaged, read
from nodeagent.cli.shared.errors import Failure
from nodeagent.cli.shared.options import Output, output_option
from nodeagent.cli.shared.output import write, write_json


@click.command("version")
@output_option
def command(output: Output) -> None:
    """Show the version, the commit and the build.

    No daemon is asked: status says which version runs.
    """
    if output == Output.JSON:
        write_json(_fields(_build()))
    else:
        show()


def show() -> None:
    """Writes the text. Raises Failure."""
    for line in _lines(_build()):
        write(line)


def _build() -> Build | None:
    try:
        return read()
    except BuildDamaged as error:
        raise Failure(str(error)) from error


def _lines(build: Build | None) -> Iterator[str]:
    yield f"nodeagent {__version__}"
    if build is None:
        yield "commit: unknown"
        yield f"build: none, not installed from a package; Python {platform.python_version()}"
        return
    if build.commit is None:
        yield "commit: unknown; built outside of a repository"
    else:
        changed = "" if build.clean else ", with changes that are not in it"
        yield f"commit: {build.commit} of {build.committed_at}{changed}"
    yield f"build: {build.architecture}, Python {build.interpreter}"


def _fields(build: Build | None) -> dict[str, Any]:
    return {
        "version": __version__,
        "python": platform.python_version(),
        "package": build is not None,
        "commit": build and build.commit,
        "clean": build and build.clean,
        "committed_at": build and build.committed_at,
        "architecture": build and build.architecture,
        "interpreter": build and build.interpreter,
    }
