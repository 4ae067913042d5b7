"""What the container image holds, for both architectures: the package's own files, and what these need."""

import hashlib
import importlib.metadata
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import nodeagent
from tests.e2e.conftest import ROOT, build_image
from tests.e2e.elf import MACHINE, begins_as_elf, elf
from tests.e2e.image import inspected, unpacked

pytestmark = [pytest.mark.release, pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(900)]

SITE = "usr/lib/nodeagent/python/lib/python3.13/site-packages"
LEFT_OUT = re.compile(
    r"usr/lib/(sys.*|tmpfiles\.d(/.*)?)|usr/share/(man|fish|zsh|bash-completion|lintian)(/.*)?"
    r"|usr/share/doc/nodeagent/(docs|examples|packaging|[^/]*\.md)(/.*)?"
)
"""Of the package: for a booted system, and for people who log in."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    architecture: str
    image: Path
    package: Path
    root: Path

    def files(self) -> Mapping[str, str]:
        """By path: what it is."""
        return _files(self.root)


@pytest.fixture(scope="module", params=["amd64", "arm64"])
def tree(
    request: pytest.FixtureRequest, image: Path, debian_package: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Unpacked:  # fmt: skip
    bundle = unpacked(image, request.param, tmp_path_factory.mktemp("image") / request.param)
    return Unpacked(
        architecture=request.param,
        image=image,
        package=debian_package(request.param),
        root=bundle / "rootfs",
    )


def test_one_name_is_for_both_architectures(image: Path) -> None:
    index = inspected(image, "--raw")

    assert index["mediaType"] == "application/vnd.oci.image.index.v1+json"
    assert [each["platform"] for each in index["manifests"]] == [
        {"architecture": architecture, "os": "linux"} for architecture in ("amd64", "arm64")
    ]


def test_it_says_what_it_is_and_runs_as_nobody_special(tree: Unpacked) -> None:
    found = inspected(tree.image, "--config", f"--override-arch={tree.architecture}")
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    labels = {
        key.removeprefix("org.opencontainers.image."): value
        for key, value in found["config"]["Labels"].items()
    }

    assert (found["architecture"], found["os"]) == (tree.architecture, "linux")
    assert found["config"]["Entrypoint"] == ["/usr/lib/nodeagent/bin/nodeagent"]
    assert found["config"]["User"] == "65532:65532"
    assert labels == {
        "title": "nodeagent",
        "description": "Fault detection for AI nodes",
        "licenses": "Apache-2.0",
        "version": nodeagent.__version__,
        "revision": commit.stdout.strip(),
        "created": found["created"],
    }


def test_what_the_package_has_is_there_as_it_is(tree: Unpacked, tmp_path: Path) -> None:
    subprocess.run(["dpkg-deb", "--extract", tree.package, tmp_path / "package"], check=True)
    packaged = _files(tmp_path / "package")
    wanted = {path: what for path, what in packaged.items() if not LEFT_OUT.fullmatch(path)}

    assert f"{SITE}/nodeagent/__init__.py" in wanted
    assert {f"usr/share/doc/nodeagent/{name}" for name in ("copyright", "sbom.cdx.json")} <= wanted.keys()
    assert {path: what for path, what in tree.files().items() if path in packaged} == wanted


def test_next_to_the_package_are_the_modules_of_bridge_and_export_and_debians_libraries(
    tree: Unpacked, tmp_path: Path
) -> None:
    subprocess.run(["dpkg-deb", "--extract", tree.package, tmp_path / "package"], check=True)
    added = tree.files().keys() - _files(tmp_path / "package").keys()
    found = importlib.metadata.distributions(path=[str(tree.root / SITE)])
    versions = {_normal(each.name): each.version for each in found}
    allowed = re.compile(
        rf"({SITE}|(usr/)?lib(64)?|usr/lib/[^/]*-linux-gnu|etc|var/lib/dpkg/status\.d)/.*"
        r"|lib(64)?|usr/lib/os-release|usr/lib64|usr/share/(doc/.*|common-licenses(/.*)?)"
        r"|dev|proc|run|sys|tmp|var(/tmp|/lib(/dpkg(/status\.d)?)?)?"
    )

    assert {path for path in added if not allowed.fullmatch(path)} == set()
    modules_of_both = {**_locked("kubernetes.lock"), **_locked("otlp.lock")}
    assert versions.items() >= modules_of_both.items()
    assert versions.keys() == {"nodeagent", "nodeagent-client", *modules_of_both}
    assert {path.name for path in (tree.root / "usr/bin").iterdir()} == {"nodeagent"}


def test_scanners_find_the_packages_of_debian(tree: Unpacked) -> None:
    """And the licence of each."""
    told = [each.read_text() for each in (tree.root / "var/lib/dpkg/status.d").iterdir()]
    names = {name for text in told for name in re.findall(r"^Package: (.*)$", text, re.MULTILINE)}

    assert {"libc6", "libgcc-s1", "libstdc++6", "libsystemd0"} <= names
    assert all(re.search(rf"^Architecture: {tree.architecture}$", text, re.MULTILINE) for text in told)
    documented = tree.root / "usr/share/doc"
    assert {each.parent.name for each in documented.glob("*/copyright")} == {*names, "nodeagent"}
    assert "VERSION_CODENAME=trixie" in (tree.root / "etc/os-release").read_text()


def test_no_object_lacks_a_library(tree: Unpacked) -> None:
    objects = {
        path: elf(path)
        for path in tree.root.rglob("*")
        if path.is_file() and not path.is_symlink() and begins_as_elf(path)
    }
    (libraries,) = tree.root.glob("usr/lib/*-linux-gnu")
    lacking = {
        str(path.relative_to(tree.root)): lacks
        for path, each in objects.items()
        if (lacks := {name for name in each.needed if not (libraries / name).exists()})
    }

    assert tree.root / "usr/lib/nodeagent/python/bin/python3.13" in objects
    assert {each.machine for each in objects.values()} == {MACHINE[tree.architecture]}
    assert lacking == {}


def test_no_link_leads_nowhere(tree: Unpacked) -> None:
    """In the image: what the package links to of the system is there."""
    broken = {
        str(path.relative_to(tree.root)): str(path.readlink())
        for path in tree.root.rglob("*")
        if path.is_symlink() and not _led_to(tree.root, path).exists()
    }

    assert broken == {}


def _led_to(root: Path, link: Path) -> Path:
    target = link.readlink()
    return root / target.relative_to("/") if target.is_absolute() else link.parent / target


def test_all_is_roots_and_nothing_raises_rights(tree: Unpacked) -> None:
    for path in tree.root.rglob("*"):
        status = path.lstat()
        assert (status.st_uid, status.st_gid) == (0, 0), path
        assert not status.st_mode & (stat.S_ISUID | stat.S_ISGID), path
        writable = status.st_mode & stat.S_IWOTH and not path.is_symlink()
        assert not writable or path.name == "tmp", path


def test_built_again_it_has_the_same_bytes(image: Path, tmp_path: Path) -> None:
    packed = image.with_name(f"{image.name}.tar")
    before = shutil.copytree(image, tmp_path / "before")
    digest = _digest(packed)

    build_image()

    assert _files(image) == _files(before)
    assert _digest(packed) == digest


def _files(root: Path) -> Mapping[str, str]:
    return {str(path.relative_to(root)): _what(path) for path in root.rglob("*")}


def _what(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"link to {path.readlink()}"
    return f"{stat.filemode(mode)} {_digest(path) if stat.S_ISREG(mode) else ''}"


def _digest(path: Path) -> str:
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _locked(name: str) -> Mapping[str, str]:
    """Each distribution that is for Linux, with its version."""
    text = (ROOT / "packaging" / name).read_text()
    return dict(re.findall(r"^([a-z][\w.-]*)==(\S+) \\$", text, re.MULTILINE))


def _normal(name: str) -> str:
    """As locks have it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
