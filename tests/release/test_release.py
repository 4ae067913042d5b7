"""What ./dev release leaves behind: a whole repository and a tag, or nothing."""

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.release.checkout import URL, Checkout, made
from tests.release.key_ring import KeyRing

pytestmark = [pytest.mark.slow]

FILES = {
    f"{package}{form}"
    for package in ("nodeagent", "nodeagent-emulator")
    for form in ("_1.2.0_amd64.deb", "_1.2.0_arm64.deb", "-1.2.0-1.x86_64.rpm", "-1.2.0-1.aarch64.rpm")
} | {"nodeagent_client-1.2.0-py3-none-any.whl", "nodeagent-job-1.2.0.pyz"}


@pytest.fixture(scope="module")
def key(keys: KeyRing) -> str:
    return keys.make("release")


@pytest.fixture
def checkout(tmp_path: Path, keys: KeyRing) -> Checkout:
    return made(tmp_path / "checkout", keys.folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "served" / "repository"


def released(checkout: Checkout, folder: Path, *keys: str, url: str = URL) -> str:
    """What it tells."""
    done = checkout.release(
        *(word for key in keys for word in ("--key", key)), "--url", url, "--into", folder
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def refused(checkout: Checkout, folder: Path, key: str, url: str = URL) -> str:
    done = checkout.release("--key", key, "--url", url, "--into", folder)
    assert done.returncode == 1, done.stderr
    return done.stderr[done.stderr.index("failed: ") :].removeprefix("failed: ").strip()


def held(folder: Path) -> dict[str, str]:
    """The digest of each file below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_each_file_is_there_with_its_sum_and_the_commit(checkout: Checkout, folder: Path, key: str) -> None:
    released(checkout, folder, key)

    release = folder / "releases/1.2.0"
    lines = [line.split("  ") for line in (release / "SHA256SUMS").read_text().splitlines()]
    sums = {name: digest for digest, name in lines}
    there = held(release)
    assert {"SHA256SUMS", "SHA256SUMS.asc"} == there.keys() - sums.keys()
    assert sums == {name: there[name] for name in {*FILES, "COMMIT"}}
    assert (release / "COMMIT").read_text().strip() == checkout.git("rev-parse", "HEAD")


def test_what_is_published_is_what_was_built_but_for_the_signature_of_rpms(
    checkout: Checkout, folder: Path, key: str
) -> None:
    released(checkout, folder, key)

    published, built = held(folder / "releases/1.2.0"), held(checkout.root / "dist")
    assert {name for name in FILES if published[name] != built[name]} == {
        name for name in FILES if name.endswith(".rpm")
    }
    rpms = sorted((folder / "releases/1.2.0").glob("*.rpm"))
    subprocess.run(["rpmsign", "--delsign", *rpms], check=True, capture_output=True)
    assert {path.name: held(folder / "releases/1.2.0")[path.name] for path in rpms} == {
        path.name: built[path.name] for path in rpms
    }


def test_the_tag_is_signed_and_names_the_commit(checkout: Checkout, folder: Path, key: str) -> None:
    released(checkout, folder, key)

    assert checkout.git("rev-parse", "v1.2.0^{commit}") == checkout.git("rev-parse", "HEAD")
    checkout.git("verify-tag", "v1.2.0")


def test_whoever_serves_it_can_read_it(checkout: Checkout, folder: Path, key: str) -> None:
    released(checkout, folder, key)

    modes = {path.stat().st_mode & 0o7777 for path in (folder, *folder.rglob("*"))}
    assert modes == {0o755, 0o644}
    assert list(folder.parent.iterdir()) == [folder]


def test_a_second_run_changes_no_file_that_was_published(checkout: Checkout, folder: Path, key: str) -> None:
    released(checkout, folder, key)
    before = held(folder)

    told = released(checkout, folder, key, url="file:///srv/nodeagent")

    after = held(folder)
    assert f"==> {folder} holds 1.2.0 already: its files stay as they are\n" in told
    assert "==> the tag v1.2.0 is there\n" in told
    assert {path for path in before if "/pool/" in path or path.endswith((".rpm", "SHA256SUMS.asc"))} <= {
        path for path, digest in after.items() if before.get(path) == digest
    }
    assert "URIs: file:///srv/nodeagent/apt\n" in (folder / "nodeagent.sources").read_text()
    assert "\nbaseurl=file:///srv/nodeagent/rpm/$basearch\n" in (folder / "nodeagent.repo").read_text()


def test_a_second_run_makes_the_tag_that_is_missing(checkout: Checkout, folder: Path, key: str) -> None:
    released(checkout, folder, key)
    checkout.git("tag", "--delete", "v1.2.0")

    released(checkout, folder, key)

    checkout.git("verify-tag", "v1.2.0")


def test_earlier_versions_and_what_else_is_served_stay(checkout: Checkout, folder: Path, key: str) -> None:
    released(checkout, folder, key)
    (folder / "index.html").write_text("welcome")
    before = held(folder)
    checkout.turn_to("1.3.0")

    released(checkout, folder, key)

    after = held(folder)
    kept = {
        path for path in before if path.startswith("releases/") or path.endswith((".deb", ".rpm", ".html"))
    }
    assert {path: after.get(path) for path in kept} == {path: before[path] for path in kept}
    by_digest = {path for path in before if "/by-hash/" in path or path.endswith(".xml.gz")}
    assert by_digest <= after.keys()
    for architecture in ("amd64", "arm64"):
        listed = (folder / f"apt/dists/stable/main/binary-{architecture}/Packages").read_text()
        assert {line for line in listed.splitlines() if line.startswith("Filename: ")} == {
            f"Filename: pool/main/n/nodeagent/nodeagent{part}_{version}_{architecture}.deb"
            for version in ("1.2.0", "1.3.0")
            for part in ("-emulator", "")
        }


def test_the_keys_before_stay_among_the_published_ones(
    checkout: Checkout, folder: Path, key: str, keys: KeyRing
) -> None:
    new = keys.make("new")
    released(checkout, folder, key)
    checkout.turn_to("1.3.0")

    released(checkout, folder, new, key)

    shown = keys.gpg("--with-colons", "--show-keys", str(folder / "nodeagent.gpg"))
    assert {line.split(":")[9] for line in shown.splitlines() if line.startswith("fpr")} == {key, new}
    assert (folder / "nodeagent.asc").read_text().count("BEGIN PGP PUBLIC KEY BLOCK") == 2
    signed = keys.gpg("--status-fd=1", "--verify", str(folder / "apt/dists/stable/InRelease"))
    assert {line.split()[2] for line in signed.splitlines() if "VALIDSIG" in line} == {key, new}


def failing_build(checkout: Checkout) -> str:
    append_to_build(checkout, "exit 3")
    return "packaging/build.sh --all ended with 3"


def missing_package(checkout: Checkout) -> str:
    append_to_build(checkout, 'rm "dist/nodeagent_${VERSION}_arm64.deb"')
    return "packaging/build.sh --all has not built nodeagent_1.3.0_arm64.deb"


def refused_tag(checkout: Checkout) -> str:
    """By a hook: the last that can fail, when the new folder is in its place."""
    hook = checkout.root / ".git/hooks/reference-transaction"
    hook.write_text("#!/bin/sh\n! grep -q refs/tags\n")
    hook.chmod(0o755)
    return f"git -C {checkout.root} -c gpg.format=openpgp tag ended with 128"


def append_to_build(checkout: Checkout, line: str) -> None:
    build = (checkout.root / "packaging/build.sh").read_text()
    checkout.write("packaging/build.sh", f"{build}{line}\n")


@pytest.mark.parametrize("there", [False, True], ids=["a new folder", "an earlier release"])
@pytest.mark.parametrize("fail", [failing_build, missing_package, refused_tag])
def test_what_fails_leaves_nothing(
    checkout: Checkout, folder: Path, key: str, fail: Callable[[Checkout], str], there: bool
) -> None:
    folder.parent.mkdir()
    if there:
        released(checkout, folder, key)
    before = held(folder)
    said = fail(checkout)
    checkout.turn_to("1.3.0")

    assert refused(checkout, folder, key).startswith(said)

    assert held(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == (["repository"] if there else [])
    assert checkout.git("tag", "--list", "v1.3.0") == ""


def test_what_an_earlier_build_left_is_not_released(checkout: Checkout, folder: Path, key: str) -> None:
    checkout.write("dist/nodeagent-1.2.0.cdx.json", "")
    checkout.write("dist/nodeagent-1.1.0.cdx.json", "")

    released(checkout, folder, key)

    assert held(folder / "releases/1.2.0").keys() == {*FILES, "COMMIT", "SHA256SUMS", "SHA256SUMS.asc"}


def test_what_else_the_build_names_after_the_version_is_released(
    checkout: Checkout, folder: Path, key: str
) -> None:
    append_to_build(checkout, 'echo >"dist/nodeagent-$VERSION.cdx.json"')
    checkout.commit()

    released(checkout, folder, key)

    assert (folder / "releases/1.2.0/nodeagent-1.2.0.cdx.json").exists()


def test_a_commit_that_appears_during_the_build_is_noticed(
    checkout: Checkout, folder: Path, key: str
) -> None:
    append_to_build(checkout, "git commit --quiet --allow-empty --message more")
    checkout.commit()

    assert refused(checkout, folder, key) == (
        "the commit has changed while 1.2.0 was built; right is to run it again"
    )
    assert not folder.exists()


def test_a_release_of_another_commit_is_not_replaced(checkout: Checkout, folder: Path, key: str) -> None:
    released(checkout, folder, key)
    before = checkout.git("rev-parse", "--short=12", "HEAD")
    checkout.git("tag", "--delete", "v1.2.0")
    checkout.write("more", "")
    own = checkout.commit()

    assert refused(checkout, folder, key) == (
        f"{folder}/releases/1.2.0 was built of commit {before}, and this one is {own[:12]}; "
        "right is a higher version: what is published is never replaced"
    )


def test_a_published_file_that_has_changed_is_named(checkout: Checkout, folder: Path, key: str) -> None:
    released(checkout, folder, key)
    (folder / "releases/1.2.0/nodeagent-job-1.2.0.pyz").write_text("something else")

    assert "nodeagent-job-1.2.0.pyz: FAILED" in refused(checkout, folder, key)


def test_a_package_of_an_earlier_release_that_nobody_has_signed_is_named(
    checkout: Checkout, folder: Path, key: str
) -> None:
    released(checkout, folder, key)
    rpm = folder / "rpm/x86_64/nodeagent-1.2.0-1.x86_64.rpm"
    unsigned = (checkout.root / "dist" / rpm.name).read_bytes()
    rpm.unlink()
    rpm.write_bytes(unsigned)
    before = held(folder)
    checkout.turn_to("1.3.0")

    assert "nodeagent-1.2.0-1.x86_64.rpm: digests SIGNATURES NOT OK" in refused(checkout, folder, key)
    assert held(folder) == before


def test_a_folder_of_something_else_is_left_alone(checkout: Checkout, folder: Path, key: str) -> None:
    folder.mkdir(parents=True)
    (folder / "letter").write_text("")

    assert refused(checkout, folder, key) == (
        f"{folder} holds something else; right is a new folder, or one that ./dev release has laid out"
    )
    assert refused(checkout, folder / "letter", key) == (
        f"{folder}/letter is not a folder; right is a new one, or one that ./dev release has laid out"
    )
    assert refused(checkout, Path("/proc"), key).startswith("/proc is a mount point")


@pytest.mark.parametrize(
    "url", ["packages.example.com", "ftp://a/b", "file://srv/x", "https://a/b c", "file:///"]
)
def test_a_place_that_no_node_could_read_is_refused(
    checkout: Checkout, folder: Path, key: str, url: str
) -> None:
    assert refused(checkout, folder, key, url).startswith(
        f"--url {url} is no place of a folder; right is where"
    )
