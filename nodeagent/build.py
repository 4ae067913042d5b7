"""What the build of the package wrote down of itself: ``build.json`` beside this module.

It holds values of what was built, and nothing of when and where: the same commit gives the same bytes. A
checkout and a wheel have no such file. It is read only when somebody asks.
"""

from pathlib import Path
from typing import Final

import msgspec

FILE: Final = Path(__file__).with_name("build.json")


class Build(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    commit: str | None
    """Of git; None where the sources were in no repository."""
    clean: bool | None
    """Whether the sources were exactly those of ``commit``."""
    committed_at: str | None
    """RFC 3339, in UTC."""
    architecture: str
    """As ``uname -m`` names it."""
    interpreter: str
    """The version of the source package of Debian that the interpreter is built from."""


class BuildDamaged(Exception):
    """``build.json`` is there, and is not what a build writes."""


def read() -> Build | None:
    """None where this was not built as a package. Raises BuildDamaged."""
    try:
        return msgspec.json.decode(FILE.read_bytes(), type=Build)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BuildDamaged(f"{FILE}: {error}; install the package again") from error
