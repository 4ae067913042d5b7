"""Keys that cannot sign a release: told before the build, and what would be right."""

from pathlib import Path

import pytest

from tests.release.checkout import URL, Checkout, made
from tests.release.key_ring import KeyRing

pytestmark = [pytest.mark.slow]

LONG_AGO = "20200101T000000!"


@pytest.fixture
def checkout(tmp_path: Path, keys: KeyRing) -> Checkout:
    return made(tmp_path / "checkout", keys.folder)


def refused(checkout: Checkout, key: str) -> str:
    done = checkout.release("--key", key, "--url", URL)
    assert done.returncode == 1, done.stderr
    assert not (checkout.root / "dist").exists()
    return done.stderr.splitlines()[-1].removeprefix("failed: ")


def test_one_that_is_not_there(checkout: Checkout, keys: KeyRing) -> None:
    other = keys.make("other")

    said = refused(checkout, "nobody")

    assert said.startswith(
        "--key nobody is none of the secret keys in the key ring; right is the fingerprint of one: "
    )
    assert other in said


def test_one_in_an_empty_key_ring(checkout: Checkout, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o700)

    assert refused(Checkout(checkout.root, empty), "nobody").endswith(
        "there is none (gpg --import, or GNUPGHOME)"
    )


def test_a_name_of_several(checkout: Checkout, keys: KeyRing) -> None:
    both = keys.make("twin one"), keys.make("twin another")

    assert refused(checkout, "twin") == (
        "--key twin fits several of the secret keys in the key ring; right is the fingerprint of one: "
        f"{', '.join(both)}"
    )


def test_a_file(checkout: Checkout, tmp_path: Path) -> None:
    file = tmp_path / "secret.asc"
    file.write_text("")

    assert refused(checkout, str(file)) == (
        f"--key {file} is a file; right is: gpg --import {file}, and the fingerprint it tells"
    )


def test_one_that_the_rpm_of_older_distributions_does_not_take(checkout: Checkout, keys: KeyRing) -> None:
    elliptic = keys.make("elliptic", algorithm="ed25519")

    assert refused(checkout, elliptic) == (
        f"--key {elliptic} is not of RSA, the one kind that the rpm of each distribution takes; "
        "right is one of: gpg --quick-generate-key NAME rsa4096 sign 3y"
    )


def test_one_that_has_expired(checkout: Checkout, keys: KeyRing) -> None:
    keys.gpg(
        f"--faked-system-time={LONG_AGO}",
        "--passphrase",
        "",
        "--quick-generate-key",
        "old",
        "rsa2048",
        "sign",
        "1y",
    )
    old = keys.fingerprint("old")

    assert refused(checkout, old) == f"--key {old} has expired; right is one that signs (docs/releasing.md)"
