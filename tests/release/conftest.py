"""Checkouts to release, and keys to sign with that live as long as the tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.release.checkout import Checkout, made
from tests.release.key_ring import KeyRing, key_ring


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return made(tmp_path / "checkout")


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyRing]:
    with key_ring(tmp_path_factory.mktemp("keys")) as ring:
        yield ring
