"""Which functions a built library has; and taking some away, so that it is as an older one.

It changes a copy beside a node, before anybody loads it; never the library that was built.
"""

from collections.abc import Collection, Iterable
from pathlib import Path


class NoSuchFunction(LookupError):
    """The library exports no function of that name."""


def expect_function(libraries: Iterable[Path], function: str) -> None:
    """Raises ``NoSuchFunction`` where none of them has it; ``*`` at its end: none that begins so."""
    named = b"\0" + (function.encode()[:-1] if function.endswith("*") else function.encode() + b"\0")
    if not any(named in library.read_bytes() for library in libraries):
        raise NoSuchFunction(f"{function}: no library of this node has such a function")


def take_away(library: Path, functions: Collection[str]) -> None:
    """Renames functions in the library's table of names. Raises ``NoSuchFunction``; nothing is changed then.

    What has the file mapped already keeps the old one: a new file takes its place.
    """
    content = library.read_bytes()
    for function in functions:
        named = b"\0" + function.encode() + b"\0"
        # The linker hashes each name: one that reads otherwise than its hash says is found by nobody.
        if named not in content:
            raise NoSuchFunction(f"{library.name} has no function {function}")
        content = content.replace(named, b"\0~" + named[2:])
    fresh = library.with_name(f".{library.name}")
    fresh.write_bytes(content)
    fresh.chmod(library.stat().st_mode)
    fresh.replace(library)
