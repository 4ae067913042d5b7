"""``nodeagent emulator front``: single answers of NVML changed, of an emulated library or of the real one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from nodeagent.cli.shared.errors import Failure
from nodeagent.cli.shared.output import write
from nodeagent.emulator.build import BuildFailed
from nodeagent.emulator.layout import FieldError
from nodeagent.emulator.nvml import Front

FOLDER: Final = "front"
LINES: Final = """\b
FUNCTION r CODE [GPU]          answers this nvmlReturn_t
FUNCTION v VALUE [GPU]         gives this value
FUNCTION d MILLISECONDS [GPU]  takes so much longer
field ID SCOPE GPU RETURN [TYPE VALUE]   one field; RETURN -1: left as it came
unpopulated CODE [GPU]         nvmlDeviceGetFieldValues where no field has a value
xid NUMBER GPU XID [GI CI [SET]]         sent once for each NUMBER; SET: to that GPU's set

GPU is an index, -1 or nothing: each. FUNCTION may end in *. The first line about an answer is in force.
"""


def group(directory_option: Callable[[Callable[..., Any]], Callable[..., Any]]) -> click.Group:
    """``directory_option`` is that of the emulated node; the front lies in a folder of it."""

    @click.group("front")
    def front() -> None:
        """Stand in front of a libnvidia-ml.so.1, also a real one, and change single answers while it is
        used.
        """

    @front.command("start")
    @click.argument("library", type=click.Path(path_type=Path), required=False)
    @directory_option
    def start(library: Path | None, directory: Path) -> None:
        """Put a front before LIBRARY; else before the one of the emulated node. It prints the
        configuration.
        """
        made = _or_fail(lambda: Front.create(_folder(directory), library or directory / "libnvidia-ml.so.1"))
        write("the daemon uses it with this configuration:")
        write(f'[drivers.nvidia]\nlibrary = "{made.path}"')

    @front.command("set", help=f"Change what these LINEs say, and nothing else.\n\n{LINES}")
    @click.argument("lines", metavar="LINE...", nargs=-1, required=True)
    @directory_option
    def change(lines: tuple[str, ...], directory: Path) -> None:
        _or_fail(lambda: Front(_folder(directory)).change(lines))

    @front.command("add", help=f"Change what these LINEs say too.\n\n{LINES}")
    @click.argument("lines", metavar="LINE...", nargs=-1, required=True)
    @directory_option
    def add(lines: tuple[str, ...], directory: Path) -> None:
        _or_fail(lambda: Front(_folder(directory)).add(lines))

    @front.command("load")
    @click.argument("file", type=click.Path(path_type=Path))
    @directory_option
    def load(file: Path, directory: Path) -> None:
        """Change what the lines of FILE say, and nothing else."""
        _or_fail(lambda: Front(_folder(directory)).change(file.read_text(errors="replace").splitlines()))

    @front.command("clear")
    @directory_option
    def clear(directory: Path) -> None:
        """Change nothing any more."""
        _or_fail(lambda: Front(_folder(directory)).clear())

    @front.command("show")
    @directory_option
    def show(directory: Path) -> None:
        """Show the lines in force."""
        for line in _or_fail(lambda: Front(_folder(directory)).lines):
            write(line)

    return front


def _folder(directory: Path) -> Path:
    return directory.absolute() / FOLDER


def _or_fail(do: Callable[[], Any]) -> Any:
    try:
        return do()
    except (FieldError, BuildFailed) as refused:
        raise Failure(str(refused)) from refused
    except OSError as failed:
        raise Failure(f"{failed.filename}: {failed.strerror}") from failed
