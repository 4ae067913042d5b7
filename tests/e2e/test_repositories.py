"""The real packages out of a signed repository: by apt in a booted Debian, by dnf into a tree for rpms."""

import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from release import repository
from release.keys import Keys
from tests.e2e.installed_node import UNIT
from tests.e2e.machine import Machine, booted
from tests.e2e.rpms import NEEDED, distribution
from tests.e2e.tree import laid_over
from tests.release.key_ring import KeyRing, key_ring
from tests.release.readers import Dnf, moved

pytestmark = [pytest.mark.release, pytest.mark.root, pytest.mark.slow, pytest.mark.timeout(900)]

SERVED = "/srv/nodeagent"
VERSION = "9.9.9"
"""Of the release. Its packages have their own; it matters to none of their readers."""


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyRing]:
    with key_ring(tmp_path_factory.mktemp("keys")) as ring, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GNUPGHOME", str(ring.folder))
        yield ring


@pytest.fixture(scope="module")
def published(
    package: Path, rpm_package: Path, keys: KeyRing, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """As ./dev release lays it out, of the packages for this machine."""
    folder = tmp_path_factory.mktemp("published") / "served"
    signing = Keys.named([keys.make("nodeagent <nodeagent@example.com>")])
    with repository.staged(folder) as staging:
        repository.add(staging, [package, rpm_package], VERSION, "0" * 40, signing)
        repository.index(staging, signing, f"file://{SERVED}")
        repository.verify(staging)
        with repository.replaced(folder, staging):
            pass
    return folder


def test_apt_installs_it_in_a_booted_machine(published: Path, tmp_path: Path) -> None:
    with laid_over(tmp_path / "node") as root, booted(root) as node:
        prepare(node, published)

        node.run("apt-get", "update", "-oAPT::Update::Error-Mode=any")
        node.run("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "--yes", "nodeagent")

        assert node.property_of(UNIT, "ActiveState") == "active"
        assert f"file:{SERVED}/apt stable/main" in node.read("apt-cache", "policy", "nodeagent")
        assert "nodeagent" in node.read("nodeagent", "version")


def test_apt_installs_nothing_that_another_has_signed_or_nobody(
    published: Path, keys: KeyRing, tmp_path: Path
) -> None:
    other = tmp_path / "other.gpg"
    keys.gpg("--output", str(other), "--export", keys.make("somebody else"))
    with laid_over(tmp_path / "node") as root, booted(root) as node:
        prepare(node, published)
        node.write("/etc/apt/keyrings/nodeagent.gpg", other.read_bytes())
        assert "NO_PUBKEY" in refused_update(node)

        node.write("/etc/apt/keyrings/nodeagent.gpg", (published / "nodeagent.gpg").read_bytes())
        spoil = "for each in */Packages.xz */by-hash/*/*; do echo >>$each; done"
        node.run("sh", "-c", f"cd {SERVED}/apt/dists/stable/main && {spoil}")
        assert "Hash Sum mismatch" in refused_update(node)

        found = node.run("apt-get", "install", "--yes", "nodeagent", check=False)
        assert "Unable to locate package nodeagent" in found.stderr


@pytest.fixture
def reader(published: Path, tmp_path: Path) -> Iterator[Dnf]:
    """dnf with this repository and another, of what the package needs of a distribution."""
    other = distribution(tmp_path / "distribution", *NEEDED).parent
    subprocess.run(["createrepo_c", "--quiet", other], check=True)
    with laid_over(tmp_path / "node") as root:
        dnf = Dnf(tmp_path / "dnf", moved(published, tmp_path / "served"), root)
        text = f"[distribution]\nname=distribution\nbaseurl=file://{other}\ngpgcheck=0\n"
        (dnf.root / "repos/distribution.repo").write_text(text)
        yield dnf


def test_dnf_installs_it_into_a_tree_with_an_rpm_database(reader: Dnf) -> None:
    done = reader.run("install", "nodeagent")

    assert done.returncode == 0, done.stdout + done.stderr
    assert [name.rsplit("-", 2)[0] for name in reader.held()] == ["distribution", "nodeagent"]
    verified = subprocess.run(
        ["rpm", f"--root={reader.tree}", "--verify", "nodeagent"], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stdout) == (0, "")


def test_dnf_installs_nothing_that_somebody_has_changed(reader: Dnf) -> None:
    (package,) = reader.repository.glob(f"rpm/{platform.machine()}/nodeagent-[0-9]*.rpm")
    with package.open("ab") as changed:
        changed.write(b"\n")

    done = reader.run("install", "nodeagent")

    assert done.returncode == 1
    assert "has incorrect checksum" in done.stderr
    assert reader.held() == []


def prepare(node: Machine, published: Path) -> None:
    """What docs/installing.md says, on a machine that knows no other source."""
    shutil.copytree(published, node.root / SERVED.lstrip("/"))
    node.run("rm", "-rf", "/etc/apt/sources.list", "/etc/apt/sources.list.d", "/var/lib/apt/lists")
    for name, place in (("gpg", "keyrings"), ("sources", "sources.list.d")):
        node.run("install", "-D", "-m644", f"{SERVED}/nodeagent.{name}", f"/etc/apt/{place}/nodeagent.{name}")


def refused_update(node: Machine) -> str:
    done = node.run("apt-get", "update", "-oAPT::Update::Error-Mode=any", check=False)
    assert done.returncode == 100
    return done.stderr
