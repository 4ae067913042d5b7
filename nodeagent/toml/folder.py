"""Which files of a folder are read: those with a known ending, in the order of their names. It opens none."""

from collections.abc import Callable, Collection
from pathlib import Path

from nodeagent.toml.problem import Problem


def files_of(
    folder: Path, endings: Collection[str], most: int, kind: str, report: Callable[[Problem], None]
) -> list[Path]:
    """The files with one of the endings, dot files left out; none after having reported why.

    ``kind`` is the word for what the files are, in the plural: ``tables``.
    """

    def refuse(file: str, reason: str) -> list[Path]:
        report(Problem(file=file, line=None, key="", reason=reason))
        return []

    try:
        files = sorted(
            path for path in folder.iterdir() if path.suffix in endings and not path.name.startswith(".")
        )
    except OSError as error:
        return refuse(str(folder), f"cannot be read as a folder of {kind}: {error.strerror or error}")
    for path in files:
        if not str(path).isprintable():
            return refuse(ascii(str(path)), "its name holds what cannot be shown or is not UTF-8; rename it")
    if len(files) > most:
        return refuse(str(folder), f"holds {len(files)} {kind}; at most {most} are read")
    return files
