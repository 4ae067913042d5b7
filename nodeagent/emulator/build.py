"""Builds the libraries from ``c/``: ``python -m nodeagent.emulator.build [FOLDER]``, by default in ``lib/``.

A library is built only when its sources changed since. The compiler is ``cc``, or that of the variable CC: it
decides for which machine they are. LDFLAGS has further options for it.
"""

import hashlib
import os
import shlex
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parent / "c"
LIBRARIES: Final = Path(__file__).parent / "lib"
SOURCES_OF: Final[Mapping[str, str]] = {
    "libbmc.so": "bmc",
    "libdcmi.so": "ascend",
    "liblingqu-dcmi.so": "unifiedbus",
    "libnvidia-ml.so.1": "nvidia",
    "libnvml-front.so": "nvidia_front",
}
"""Library -> the folder of its own sources. A package has the libraries, and no sources."""
SONAMES: Final[Mapping[str, str]] = {"libnvml-front.so": "libnvidia-ml.so.1"}
"""Library -> the name by which programs look for it, where that is another. It plays no node, and shares
nothing with those that do: it is loaded before another library of that name.
"""
COMMON: Final = "shared"
OPTIONS: Final = (
    *("-std=c11", "-O2", "-g1", "-pthread", "-Wall", "-Wextra", "-Werror"),
    *("-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-z,now", "-Wl,-z,defs"),
)


class BuildFailed(RuntimeError):
    """The compiler is missing or refused; its message is the text."""


def _sources(name: str) -> list[Path]:
    own = sorted((SOURCES / SOURCES_OF[name]).glob("*.c"))
    shared = [] if name in SONAMES else sorted((SOURCES / COMMON).glob("*.c"))
    return [*shared, *own] if own else []


def _fingerprint(sources: Sequence[Path], command: Sequence[str]) -> str:
    digest = hashlib.sha256(" ".join(command).encode())
    for source in (*sources, *sorted([*SOURCES.rglob("*.h"), *SOURCES.rglob("*.def")])):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()


def _compile(command: Sequence[str]) -> None:
    try:
        made = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BuildFailed(f"no compiler: {command[0]} is not installed") from None
    if made.returncode != 0:
        raise BuildFailed(made.stderr)


def build(folder: Path = LIBRARIES, names: Collection[str] = SOURCES_OF.keys()) -> list[Path]:
    """The libraries of these names in ``folder``, built again if out of date. Raises ``BuildFailed``."""
    folder.mkdir(parents=True, exist_ok=True)
    built: list[Path] = []
    for name in names:
        sources = _sources(name)
        library, stamp = folder / name, folder / f".{name}.stamp"
        if not sources:
            if not library.exists():
                raise BuildFailed(f"{library} is not installed, nor is what it is built from")
            built.append(library)
            continue
        soname = SONAMES.get(name, name)
        linking = shlex.split(os.environ.get("LDFLAGS", ""))
        command = [os.environ.get("CC", "cc"), *OPTIONS, f"-I{SOURCES / COMMON}", f"-Wl,-soname,{soname}"]
        fingerprint = _fingerprint(sources, [*command, *linking])
        if not library.exists() or not stamp.exists() or stamp.read_text() != fingerprint:
            fresh = folder / f".{name}.{os.getpid()}"
            _compile([*command, "-o", str(fresh), *map(str, sources), "-ldl", *linking])
            fresh.replace(library)
            stamp.write_text(fingerprint)
        built.append(library)
    return built


if __name__ == "__main__":
    for path in build(Path(sys.argv[1]) if sys.argv[1:] else LIBRARIES):
        print(path)
