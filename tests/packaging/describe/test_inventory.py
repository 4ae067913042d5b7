"""What has no row, or is not as its row says, is refused, with what to write where."""

import re
from pathlib import Path

import pytest

from describe import components, inventory, sources
from describe.inventory import NotDescribed
from tests.packaging.describe.laid_out import ELF, SITE, distribution, put

PINNED = dict(re.findall(r"^([\w-]+)==([^\s;]+)", inventory.RUNTIME_LOCK.read_text(), flags=re.MULTILINE))


def refusal(root: Path) -> str:
    with pytest.raises(NotDescribed) as raised:
        inventory.of(root)
    return str(raised.value)


def test_each_pinned_distribution_of_linux_has_a_row_and_each_row_is_pinned() -> None:
    text = inventory.RUNTIME_LOCK.read_text()
    of_others = set(re.findall(r"^([\w-]+)==\S+ ; .*'win32'", text, flags=re.MULTILINE))

    assert components.read().distributions.keys() == PINNED.keys() - of_others


def test_each_source_of_the_interpreter_has_a_row_and_each_row_a_source() -> None:
    assert components.read().sources.keys() == sources.read().keys()


def test_each_licence_has_a_text() -> None:
    known = components.read()
    rows = [known.own, *known.distributions.values(), *known.sources.values(), *known.inside]
    names = {name for row in rows for name in row.shipped_under.split(" AND ")}
    texts = {path.stem for path in components.FILE.with_name("licenses").glob("*.txt")}

    assert names == {*known.common_licenses, *texts, "PSF-2.0"}


def test_a_distribution_is_listed_with_the_version_and_objects_that_lie_there(tmp_path: Path) -> None:
    distribution(tmp_path, "rich", PINNED["rich"], license_="MIT")

    (rich,) = inventory.of(tmp_path).shipped

    assert (rich.name, rich.version, rich.row.license) == ("rich", PINNED["rich"], "MIT")
    assert rich.purl == f"pkg:pypi/rich@{PINNED['rich']}"
    assert rich.objects == (f"/usr/lib/nodeagent/{SITE}/rich-{PINNED['rich']}.dist-info/METADATA",)
    assert f"/usr/lib/nodeagent/{SITE}/rich/*" in rich.files


def test_a_distribution_without_a_row_is_refused(tmp_path: Path) -> None:
    distribution(tmp_path, "left-pad", "1.0")

    said = refusal(tmp_path)

    assert said.startswith(f"{components.FILE}: [distributions.left-pad] is missing; ")
    assert "left_pad-1.0.dist-info/METADATA is shipped" in said


def test_a_distribution_of_another_version_than_the_pinned_is_refused(tmp_path: Path) -> None:
    distribution(tmp_path, "rich", "1.0")

    assert f"version 1.0; {inventory.RUNTIME_LOCK} has {PINNED['rich']}" in refusal(tmp_path)


def test_another_licence_than_that_of_the_row_is_refused(tmp_path: Path) -> None:
    distribution(tmp_path, "click", PINNED["click"], license_="GPL-3.0-only")

    assert refusal(tmp_path) == (
        f"{components.FILE}: click: license is BSD-3-Clause; its metadata says GPL-3.0-only"
    )


def test_an_object_that_nobody_owns_is_refused(tmp_path: Path) -> None:
    place = put(tmp_path, f"{SITE}/stray.so", ELF)

    assert refusal(tmp_path) == f"{components.FILE}: nothing says what {place} is made of"


def test_an_object_without_the_words_of_what_is_inside_is_refused(tmp_path: Path) -> None:
    distribution(tmp_path, "grpcio", PINNED["grpcio"], "grpc/_cython/cygrpc.cpython-313-x86_64-linux-gnu.so")

    assert refusal(tmp_path).endswith("does not contain 'lts_20260526'")


def test_what_is_inside_of_a_newer_version_is_looked_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "runtime.lock"
    lock.write_text("grpcio==99.0\n")
    monkeypatch.setattr(inventory, "RUNTIME_LOCK", lock)
    distribution(tmp_path / "lib", "grpcio", "99.0")

    reviewed = components.read().distributions["grpcio"].reviewed
    assert refusal(tmp_path / "lib") == (
        f"{components.FILE}: what is said of grpcio was looked up for {reviewed}, and 99.0 is shipped:"
        " look up what it brings along, then change reviewed"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "sources.sha256:1: not a digest and a path below pool/: 'nonsense'"),
        (f"{'0' * 64}  pool/main/z/zlib/zlib_1.orig.tar.gz", "sources.sha256: zlib: a source has one"),
        (f"{'0' * 64}  pool/main/z/zlib/zlib_1.dsc", "sources.sha256:1: neither .orig.tar nor .debian.tar"),
    ],
)
def test_a_wrong_line_of_the_sources_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "sources.sha256"
    file.write_text(f"{text}\n")

    with pytest.raises(ValueError) as raised:
        sources.read(file)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('license = "MIT"', 'licence = "MIT"', "licence"),
        ('of = "msgspec"', 'of = "msgpack"', "inside Ryu: of = 'msgpack' has no row of its own"),
        ('reviewed = "0.22.0"\n', "", "msgspec: reviewed is missing; Ryu is inside of it"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, before: str, after: str, said: str) -> None:
    file = tmp_path / "components.toml"
    file.write_text(components.FILE.read_text().replace(before, after, 1))

    with pytest.raises(ValueError) as raised:
        components.read(file)
    assert str(raised.value).startswith(f"{file}: ")
    assert said in str(raised.value)
