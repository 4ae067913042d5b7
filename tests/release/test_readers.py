"""apt and dnf read the repository as a node does, and refuse what is not as it was signed."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.release.checkout import made
from tests.release.key_ring import KeyRing
from tests.release.readers import Apt, Dnf, moved

pytestmark = [pytest.mark.slow]

Spoil = Callable[[Path], object]


@pytest.fixture(scope="module")
def key(keys: KeyRing) -> str:
    return keys.make("signs the repository")


@pytest.fixture(scope="module")
def published(keys: KeyRing, key: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository, as ./dev release has laid it out."""
    folder = tmp_path_factory.mktemp("published")
    checkout = made(folder / "checkout", keys.folder)
    done = checkout.release("--key", key, "--url", f"file://{folder}/served", "--into", folder / "served")
    assert done.returncode == 0, done.stderr
    return folder / "served"


@pytest.fixture
def repository(published: Path, tmp_path: Path) -> Path:
    """A copy for one test, which may spoil it."""
    return moved(published, tmp_path / "served")


@pytest.fixture
def apt(repository: Path, tmp_path: Path) -> Apt:
    return Apt(tmp_path / "apt", repository)


@pytest.fixture
def dnf(repository: Path, tmp_path: Path) -> Dnf:
    return Dnf(tmp_path / "dnf", repository, tmp_path / "tree")


def spoiled(*patterns: str) -> Spoil:
    """The last byte of each such file is another one; gzip and xz do not read it."""

    def spoil(repository: Path) -> None:
        files = [file for pattern in patterns for file in repository.glob(pattern)]
        assert files
        for file in files:
            content = file.read_bytes()
            file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    return spoil


def other_words(place: str, before: str, after: str) -> Spoil:
    def spoil(repository: Path) -> None:
        text = (repository / place).read_text()
        assert before in text
        (repository / place).write_text(text.replace(before, after))

    return spoil


def test_apt_finds_the_package_and_gets_it(apt: Apt, repository: Path) -> None:
    updated, downloaded = apt.run("update"), apt.run("download", "nodeagent")

    assert (updated.returncode, updated.stderr) == (0, "")
    assert "\nIgn:" not in updated.stdout
    assert "  Candidate: 1.2.0\n" in apt.run("policy", "nodeagent", program="apt-cache").stdout
    assert downloaded.returncode == 0, downloaded.stderr
    name = "nodeagent_1.2.0_amd64.deb"
    assert (apt.root / name).read_bytes() == (repository / "releases/1.2.0" / name).read_bytes()


@pytest.mark.parametrize(
    ("spoil", "refusal"),
    [
        (spoiled("apt/**/Packages*", "apt/**/by-hash/*/*"), "Hash Sum mismatch"),
        (other_words("apt/dists/stable/InRelease", "Label: nodeagent", "Label: noteagent"), "BADSIG"),
    ],
    ids=["an index", "the Release"],
)  # fmt: skip
def test_apt_refuses_an_index_that_is_not_as_it_was_signed(
    apt: Apt, repository: Path, spoil: Spoil, refusal: str
) -> None:
    spoil(repository)

    done = apt.run("update")

    assert done.returncode == 100
    assert refusal in done.stderr
    assert apt.run("policy", "nodeagent", program="apt-cache").stdout == ""


def test_apt_refuses_a_package_that_is_not_the_one_of_the_index(apt: Apt, repository: Path) -> None:
    apt.run("update")
    spoiled("apt/pool/main/n/nodeagent/nodeagent_*_amd64.deb")(repository)

    done = apt.run("download", "nodeagent")

    assert done.returncode == 100
    assert "Hash Sum mismatch" in done.stderr


def test_apt_refuses_a_repository_of_another_key(apt: Apt, keys: KeyRing) -> None:
    other = keys.make("another one, for apt")
    keys.gpg("--yes", "--output", str(apt.root / "etc/nodeagent.gpg"), "--export", other)

    done = apt.run("update")

    assert done.returncode == 100
    assert "NO_PUBKEY" in done.stderr


@pytest.mark.root
def test_dnf_installs_the_package(dnf: Dnf) -> None:
    done = dnf.run("install", "nodeagent-emulator")

    assert done.returncode == 0, done.stderr
    assert dnf.held() == ["nodeagent-emulator-1.2.0-1.x86_64"]


@pytest.mark.root
@pytest.mark.parametrize(
    ("spoil", "refusal"),
    [
        (spoiled("rpm/x86_64/repodata/*-primary.xml.gz"), "-primary.xml.gz - Cannot download"),
        (other_words("rpm/x86_64/repodata/repomd.xml", "<revision>1", "<revision>2"), "Bad GPG signature"),
        (spoiled("rpm/x86_64/nodeagent-1.2.0-1.x86_64.rpm"), "has incorrect checksum"),
    ],
    ids=["an index", "the list of indexes", "a package"],
)
def test_dnf_refuses_what_is_not_as_it_was_signed(
    dnf: Dnf, repository: Path, spoil: Spoil, refusal: str
) -> None:
    spoil(repository)

    done = dnf.run("install", "nodeagent")

    assert done.returncode == 1
    assert refusal in done.stdout + done.stderr
    assert dnf.held() == []


@pytest.mark.root
def test_dnf_refuses_a_repository_of_another_key(dnf: Dnf, repository: Path, keys: KeyRing) -> None:
    other = keys.make("another one, for dnf")
    keys.gpg("--yes", "--armor", "--output", str(repository / "nodeagent.asc"), "--export", other)

    done = dnf.run("install", "nodeagent")

    assert done.returncode == 1
    assert "Bad GPG signature" in done.stdout + done.stderr


@pytest.mark.root
def test_dnf_refuses_a_package_without_a_signature_in_a_signed_repository(
    dnf: Dnf, repository: Path, keys: KeyRing, key: str
) -> None:
    folder = repository / "rpm/x86_64"
    (package,) = folder.glob("nodeagent-1.2.0-1.*.rpm")
    subprocess.run(["rpmsign", "--delsign", package], check=True, capture_output=True)
    subprocess.run(["createrepo_c", "--quiet", "--no-database", folder], check=True)
    listed = str(folder / "repodata/repomd.xml")
    keys.gpg("--yes", "--local-user", key, "--armor", "--detach-sign", listed)

    done = dnf.run("install", "nodeagent")

    assert done.returncode == 1
    assert "Package nodeagent-1.2.0-1.x86_64.rpm is not signed" in done.stdout + done.stderr


def test_while_keys_change_a_node_with_either_reads_on(
    keys: KeyRing, key: str, published: Path, tmp_path: Path
) -> None:
    new = keys.make("comes next")
    served = moved(published, tmp_path / "served")
    before = Apt(tmp_path / "before", served)
    checkout = made(tmp_path / "checkout", keys.folder)
    checkout.turn_to("1.3.0")

    done = checkout.release("--key", new, "--key", key, "--url", f"file://{served}", "--into", served)

    assert done.returncode == 0, done.stderr
    for apt in (before, Apt(tmp_path / "after", served)):
        updated = apt.run("update")
        assert (updated.returncode, updated.stderr) == (0, "")
        assert "  Candidate: 1.3.0\n" in apt.run("policy", "nodeagent", program="apt-cache").stdout
