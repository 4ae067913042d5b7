"""Takes functions away from a built library, so that it is as an older one: looked up, they are not found.

It changes a copy beside a node, before anybody loads it; never the library that was built.
"""

from collections.abc import Collection
from pathlib import Path


class NoSuchFunction(LookupError):
    """The library exports no function of that name."""


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
