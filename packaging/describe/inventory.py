"""What is laid out for the packages, with its versions and the files that it lies in.

Each Python distribution, each source of the interpreter and what these bring along is a ``Shipped``. What has
no row in ``components.toml``, or a row that says another thing than what lies there, raises ``NotDescribed``:
then nothing is packed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from typing import Final

from packageurl import PackageURL

from describe import components, sources
from describe.components import CompilerRow, Components, InsideRow, Row
from describe.sources import Source
from nodeagent import __version__

ROOT: Final = Path(__file__).resolve().parents[2]
RUNTIME_LOCK: Final = ROOT / "packaging/runtime.lock"
COMPILER_LOCK: Final = ROOT / "packaging/interpreter/compiler.lock"
PLACE: Final = "/usr/lib/nodeagent"
"""Where the packages have what is laid out."""
OWN: Final = frozenset({"nodeagent", "nodeagent-client"})
_PINNED: Final = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+)", re.MULTILINE)


class NotDescribed(Exception):
    """Something is shipped of which ``components.toml`` says nothing, or something else."""


@dataclass(frozen=True, slots=True)
class Shipped:
    """``files`` are patterns of places on the node; ``objects`` are places of compiled files and metadata."""

    name: str
    version: str
    row: Row
    purl: str | None
    files: tuple[str, ...]
    objects: tuple[str, ...] = ()
    of: str | None = None
    """The name of the one that brings it."""

    @property
    def is_part(self) -> bool:
        """Whether it lies in files that others have a part in, and none is its alone."""
        return not self.files[0].startswith(PLACE)


@dataclass(frozen=True, slots=True)
class Inventory:
    """``files``: every file that is laid out, by its place on the node."""

    files: Mapping[str, Path]
    own: Row
    shipped: tuple[Shipped, ...]
    common_licenses: Mapping[str, str]


def of(laid_out: Path) -> Inventory:
    """Raises NotDescribed. ``laid_out`` is the folder that the package has at ``PLACE``."""
    known = components.read()
    files = {
        f"{PLACE}/{path.relative_to(laid_out)}": path
        for path in sorted(laid_out.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }
    whole = [*_distributions(known, files), *_sources(known, files)]
    shipped = [*whole, *_inside(known, whole, files)]
    _check_objects(files, shipped)
    return Inventory(files, known.own, tuple(shipped), known.common_licenses)


def is_object(path: Path) -> bool:
    with path.open("rb") as opened:
        return opened.read(4) == b"\x7fELF"


def canonical(name: str) -> str:
    """As the lock names a distribution."""
    return re.sub(r"[-_.]+", "-", name).lower()


# --- Python distributions ----------------------------------------------------------------------------------


def _distributions(known: Components, files: Mapping[str, Path]) -> Iterator[Shipped]:
    pinned = _pinned(RUNTIME_LOCK)
    for place, path in files.items():
        if not place.endswith(".dist-info/METADATA"):
            continue
        distribution = PathDistribution(path.parent)
        name = canonical(distribution.name)
        row = known.own if name in OWN else known.distributions.get(name)
        if row is None:
            raise NotDescribed(f"{components.FILE}: [distributions.{name}] is missing; {place} is shipped")
        _check_license(name, row, distribution)
        _check_reviewed(name, row, distribution.version)
        version = __version__ if name in OWN else pinned.get(name)
        if version != distribution.version:
            raise NotDescribed(
                f"{place}: version {distribution.version}; {RUNTIME_LOCK} has {version or 'none'}"
            )
        owned = _owned(place, distribution)
        yield Shipped(
            name=name,
            version=version,
            row=row,
            purl=None if name in OWN else f"pkg:pypi/{name}@{version}",  # no registry has ours
            files=_patterns(place, owned),
            objects=(place, *(each for each in sorted(owned) if each in files and is_object(files[each]))),
        )


def _check_license(name: str, row: Row, distribution: Distribution) -> None:
    told = distribution.metadata.json.get("license_expression")
    if told is not None and told != row.license:
        raise NotDescribed(f"{components.FILE}: {name}: license is {row.license}; its metadata says {told}")


def _check_reviewed(name: str, row: Row | CompilerRow, version: str) -> None:
    if row.reviewed is not None and row.reviewed != version:
        raise NotDescribed(
            f"{components.FILE}: what is said of {name} was looked up for {row.reviewed}, and {version} is"
            " shipped: look up what it brings along, then change reviewed"
        )


def _owned(place: str, distribution: Distribution) -> set[str]:
    folder = Path(place).parents[1]
    return {str(folder / each) for each in distribution.files or () if not str(each).startswith("../")}


def _patterns(place: str, owned: set[str]) -> tuple[str, ...]:
    """One for each folder or module at the top; below google and grpc others could have something too."""
    folder = Path(place).parents[1]
    tops: set[str] = set()
    for each in owned:
        first, *rest = Path(each).relative_to(folder).parts
        if rest:
            tops.add(f"{folder}/{first}/*")
        elif first.endswith(".py"):
            tops.add(f"{folder}/{first}")
            tops.add(f"{folder}/__pycache__/{first.removesuffix('.py')}.*")
    return tuple(sorted(each for each in tops if each != f"{folder}/__pycache__/*"))


def _pinned(lock: Path) -> Mapping[str, str]:
    return {canonical(each["name"]): each["version"] for each in _PINNED.finditer(lock.read_text())}


# --- the interpreter, and what others bring along ----------------------------------------------------------


def _sources(known: Components, files: Mapping[str, Path]) -> Iterator[Shipped]:
    if not any("/python/bin/" in place for place in files):
        return  # no interpreter is laid out here
    for name, source in sources.read().items():
        row = known.sources.get(name)
        if row is None:
            raise NotDescribed(f'{components.FILE}: [sources."{name}"] is missing; {sources.FILE} has it')
        yield Shipped(
            name=row.title,
            version=source.version,
            row=row,
            purl=_purl(source),
            files=row.files if name != sources.INTERPRETER else (f"{PLACE}/python/*",),
            objects=_matching(row.files, files, row.title),
        )


def _purl(source: Source) -> str:
    digests = ",".join(f"sha256:{digest}" for _, digest in sorted(source.digests.items()))
    qualifiers = {"arch": "source", "checksum": digests}
    return PackageURL("deb", "debian", source.name, source.version, qualifiers).to_string()


def _inside(known: Components, whole: Sequence[Shipped], files: Mapping[str, Path]) -> Iterator[Shipped]:
    holders = _holders(known, whole)
    for row in known.inside:
        if row.of not in holders:
            continue  # the one that brings it is not in this package
        holder, version = holders[row.of]
        places = _matching(row.files, files, row.name, needed=row.of != known.compiler.name)
        if places:
            _check_contains(row, places, files)
            yield Shipped(
                name=row.name,
                version=row.version or f"{row.of}-{version}",
                row=row,
                purl=row.purl,
                files=row.files,
                objects=places,
                of=holder,
            )


def _holders(known: Components, whole: Sequence[Shipped]) -> Mapping[str, tuple[str | None, str]]:
    """Key of the row of one that is shipped -> its name, and the version of its makers."""
    shipped = {each.name: each.version for each in whole}
    found: dict[str, tuple[str | None, str]] = {
        name: (name, shipped[name]) for name in known.distributions if name in shipped
    }
    for name, row in known.sources.items():
        if row.title in shipped:
            found[name] = row.title, shipped[row.title].rpartition("-")[0]
            _check_reviewed(name, row, found[name][1])
    compiler = known.compiler.name
    found[compiler] = None, _pinned(COMPILER_LOCK)[compiler]
    _check_reviewed(compiler, known.compiler, found[compiler][1])
    return found


def _matching(
    patterns: Sequence[str], files: Mapping[str, Path], name: str, needed: bool = True
) -> tuple[str, ...]:
    found = {pattern: [place for place in files if fnmatchcase(place, pattern)] for pattern in patterns}
    if needed and (idle := [pattern for pattern, places in found.items() if not places]):
        raise NotDescribed(f"{components.FILE}: {name}: no file is like {', '.join(idle)}")
    return tuple(sorted({place for places in found.values() for place in places}))


def _check_contains(row: InsideRow, places: Sequence[str], files: Mapping[str, Path]) -> None:
    if row.contains is None:
        return
    for place in places:
        if row.contains.encode() not in files[place].read_bytes():
            raise NotDescribed(
                f"{components.FILE}: inside {row.name}: {place} does not contain {row.contains!r}"
            )


def _check_objects(files: Mapping[str, Path], shipped: Sequence[Shipped]) -> None:
    """Each compiled file is of somebody."""
    owned = {place for each in shipped for place in each.objects}
    for place, path in files.items():
        if place not in owned and is_object(path):
            raise NotDescribed(f"{components.FILE}: nothing says what {place} is made of")
