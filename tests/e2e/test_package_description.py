"""What the packages say of what is in them, beside what is in them: nothing is shipped that is not named."""

import base64
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from nodeagent import __version__
from tests.documents import ROOT
from tests.e2e.elf import begins_as_elf
from tests.e2e.rpms import query

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SITE = "usr/lib/nodeagent/python/lib/python3.13/site-packages"
SOURCES = ROOT / "packaging/interpreter/sources.sha256"
OWN = {"nodeagent", "nodeagent-client"}
JUNK = re.compile(
    r"/(tests?|testdata|benchmarks?|examples?|include|fixtures)/(?!.*\.(yaml|md)$)"
    r"|/(example|antigravity|this|__hello__|(\w+_)?(test|benchmark|refleaks))\.py$"
    r"|\.(a|c|cc|h|pyx|rst|orig|bat)$|/direct_url\.json$"
)
"""What a root daemon's tree has no use for."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A package with the folder that it lies in, and what it says of itself."""

    name: str
    root: Path

    @property
    def documents(self) -> Path:
        return self.root / "usr/share/doc" / self.name

    @property
    def bill(self) -> Any:
        return json.loads((self.documents / "sbom.cdx.json").read_text())

    def files(self) -> Iterator[Path]:
        return (path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink())

    def place(self, path: Path) -> str:
        return f"/{path.relative_to(self.root)}"


@pytest.fixture(scope="module", params=["", "emulator_"], ids=["nodeagent", "emulator"])
def unpacked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Unpacked:
    package: Path = request.getfixturevalue(f"{request.param}package")
    root = tmp_path_factory.mktemp("unpacked")
    subprocess.run(["dpkg-deb", "--extract", package, root], check=True)
    return Unpacked(package.name.partition("_")[0], root)


def versions(bill: Any) -> dict[str, str]:
    return {each["name"]: each["version"] for each in bill["components"] if "/" not in each["bom-ref"]}


def occurrences(bill: Any) -> dict[str, list[str]]:
    """The place of a file -> the names of what is in it."""
    found: dict[str, list[str]] = {}
    for each in bill["components"]:
        for occurrence in each["evidence"]["occurrences"]:
            found.setdefault(occurrence["location"], []).append(each["name"])
    return found


def test_the_bill_of_materials_is_valid_and_of_this_package(unpacked: Unpacked) -> None:
    text = (unpacked.documents / "sbom.cdx.json").read_text()

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    about = unpacked.bill["metadata"]["component"]
    assert (about["name"], about["version"]) == (unpacked.name, __version__)
    assert (ROOT / "dist").joinpath(f"{unpacked.name}-{__version__}.x86_64.cdx.json").read_text() == text


def test_each_distribution_that_lies_there_is_in_the_bill_and_no_other(unpacked: Unpacked) -> None:
    folders = unpacked.root.joinpath(SITE).glob("*.dist-info")
    shipped = {
        re.sub(r"[-_.]+", "-", each.name).lower(): each.version for each in map(PathDistribution, folders)
    }
    of_python = {
        each["name"]: each["version"]
        for each in unpacked.bill["components"]
        if each.get("purl", "").startswith("pkg:pypi/")
    }

    assert {name: each for name, each in shipped.items() if name not in OWN} == of_python
    assert (
        shipped.get("nodeagent", __version__) == shipped.get("nodeagent-client", __version__) == __version__
    )


def test_each_source_of_the_interpreter_is_in_the_bill_with_its_digests(unpacked: Unpacked) -> None:
    purls = " ".join(each.get("purl", "") for each in unpacked.bill["components"])
    has_interpreter = (unpacked.root / "usr/lib/nodeagent/python/bin").exists()
    digests = {line.split()[0] for line in SOURCES.read_text().splitlines()}

    assert {digest for digest in digests if digest in purls} == (digests if has_interpreter else set())


def test_each_compiled_object_is_of_somebody_in_the_bill(unpacked: Unpacked) -> None:
    objects = {unpacked.place(path) for path in unpacked.files() if begins_as_elf(path)}
    named = occurrences(unpacked.bill)

    assert objects != set()
    assert objects - named.keys() == set()
    assert named.keys() - {unpacked.place(path) for path in unpacked.files()} == set()


def test_what_is_linked_into_an_object_is_named(unpacked: Unpacked) -> None:
    if unpacked.name != "nodeagent":
        pytest.skip("it has no interpreter")
    inside = {
        Path(place).name.partition(".")[0]: set(names) for place, names in occurrences(unpacked.bill).items()
    }

    assert {"CPython", "OpenSSL"} <= inside["_ssl"]
    assert {"CPython", "SQLite"} <= inside["_sqlite3"]
    assert {"CPython", "libffi"} <= inside["_ctypes"]
    assert {"CPython", "zlib"} <= inside["zlib"]
    assert {"CPython", "bzip2"} <= inside["_bz2"]
    assert {"CPython", "liblzma"} <= inside["_lzma"]
    assert {"CPython", "expat"} <= inside["pyexpat"]
    assert {"grpcio", "BoringSSL", "abseil-cpp", "c-ares", "re2", "upb", "zlib"} <= inside["cygrpc"]
    assert {"google-re2", "abseil-cpp", "pybind11"} <= inside["_re2"]


# --- copyright ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Paragraph:
    patterns: Sequence[str]
    holders: str
    licenses: Sequence[str]


def paragraphs(text: str) -> Iterator[Mapping[str, str]]:
    for stanza in text.strip().split("\n\n"):
        yield {
            found[1]: found[2].strip()
            for found in re.finditer(r"^(\S+): ?((?:.*)(?:\n .*)*)", stanza, flags=re.MULTILINE)
        }


def terms(text: str) -> list[str]:
    return text.splitlines()[0].split(" and ")


def test_the_copyright_file_has_a_paragraph_for_each_file_and_a_text_for_each_licence(
    unpacked: Unpacked,
) -> None:
    told = list(paragraphs((unpacked.documents / "copyright").read_text()))
    of_files = [
        Paragraph(each["Files"].split(), each["Copyright"], terms(each["License"]))
        for each in told
        if "Files" in each
    ]
    texts = {
        each["License"].splitlines()[0]: each["License"]
        for each in told
        if "Files" not in each and "License" in each
    }

    assert told[0]["Format"] == "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    assert {name for each in of_files for name in each.licenses} == texts.keys()
    assert [name for name, text in texts.items() if len(text.splitlines()) < 2] == []
    assert [name for each in of_files if not each.holders for name in each.patterns] == []
    by_file = {
        place: next(
            each for each in reversed(of_files) if any(fnmatchcase(place[1:], one) for one in each.patterns)
        )
        for place in map(unpacked.place, unpacked.files())
    }
    bill = {each["name"]: each for each in unpacked.bill["components"]}
    for place, names in occurrences(unpacked.bill).items():
        for name in names:
            assert bill[name]["copyright"].split("; ")[0] in by_file[place].holders, (place, name)


def test_the_text_of_a_licence_that_is_only_named_is_where_it_says(unpacked: Unpacked) -> None:
    text = (unpacked.documents / "copyright").read_text()
    named = set(re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", text))

    assert "Apache-2.0" in named
    assert named <= {"Apache-2.0", "LGPL-2.1", "CC0-1.0", "MPL-2.0"}
    if unpacked.name == "nodeagent":
        for pattern in re.findall(r"(\S+\.dist-info/\S+)\s+below", text):
            assert list(unpacked.root.joinpath(SITE).glob(pattern)) != [], pattern
        assert "systemd-python-235.tar.gz" in text  # where the source of what is under the LGPL is


# --- the tree ----------------------------------------------------------------------------------------------


def test_no_junk_is_in_the_tree(unpacked: Unpacked) -> None:
    places = [unpacked.place(path) for path in unpacked.files()]

    assert [each for each in places if JUNK.search(each) and not each.startswith("/usr/share/doc/")] == []


def test_no_module_says_that_it_is_a_program(unpacked: Unpacked) -> None:
    below = unpacked.root / "usr/lib/nodeagent/python/lib"
    executable = [path for path in below.rglob("*") if path.is_file() and path.stat().st_mode & 0o111]

    assert executable == []


def test_what_a_wheel_brought_is_as_its_makers_published_it(unpacked: Unpacked) -> None:
    changed = []
    records = unpacked.root.joinpath(SITE).glob("*.dist-info/RECORD")
    for record in (each for each in records if not each.parent.name.startswith("nodeagent")):
        for line in record.read_text().splitlines():
            name, digest, _ = line.rsplit(",", 2)
            if digest:
                held = sha256(record.parents[1].joinpath(name.strip('"')).read_bytes()).digest()
                if digest != "sha256=" + base64.urlsafe_b64encode(held).decode().rstrip("="):
                    changed.append(name)
    assert changed == []


def test_it_says_which_commit_it_was_built_of(unpacked: Unpacked) -> None:
    if unpacked.name != "nodeagent":
        pytest.skip("it has no program of its own")
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()

    program = unpacked.root / "usr/lib/nodeagent/python/bin/python3.13"
    command = [str(program), "-I", "-m", "nodeagent.cli", "version", "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)

    assert (told["version"], told["package"], told["commit"]) == (__version__, True, commit)
    assert told["interpreter"].startswith(told["python"])


# --- rpm ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["rpm_package", "rpm_emulator_package"])
def test_the_rpm_marks_documents_and_licences_and_has_a_changelog(
    which: str, request: pytest.FixtureRequest
) -> None:
    rpm: Path = request.getfixturevalue(which)
    name = query(rpm, "%{NAME}")[0]
    flags, documents = {}, set()
    for line in query(rpm, "[%{FILENAMES}|%{FILEFLAGS:fflags}|%{FILEMODES:perms}\n]"):
        place, flag, mode = line.split("|")
        flags[place] = flag.strip()
        if place.startswith(("/usr/share/doc/", "/usr/share/man/")) and mode.startswith("-"):
            documents.add(place)

    licenses = {f"/usr/share/doc/{name}/{each}" for each in ("LICENSE", "copyright")}
    assert {place for place, flag in flags.items() if "l" in flag} == licenses
    assert {place for place, flag in flags.items() if "d" in flag} == documents - licenses
    assert query(rpm, "%{CHANGELOGNAME}")[0].endswith(f" - {__version__}-1")
