"""The packages of an earlier commit, built from this repository's history as that commit builds them."""

import subprocess
from pathlib import Path

import pytest

from tests.documents import ROOT
from tests.e2e.tree import kept_as


def packages_of(commit: str) -> Path:
    """The folder with its Debian packages. Takes two minutes once, and the network; then they are kept.

    Skips the test where this clone lacks the commit, as one of the newest commits alone does.
    """
    there = subprocess.run(["git", "-C", ROOT, "cat-file", "-e", f"{commit}^{{commit}}"], check=False)
    if there.returncode:
        pytest.skip(f"this clone lacks commit {commit}: git fetch --unshallow")

    def build(into: Path) -> None:
        checkout = into / "checkout"
        subprocess.run(["git", "clone", "--quiet", "--no-checkout", ROOT, checkout], check=True)
        subprocess.run(["git", "-C", checkout, "checkout", "--quiet", commit], check=True)
        built = subprocess.run(
            ["./dev", "package", "deb"], cwd=checkout,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert built.returncode == 0, built.stderr
        for package in (checkout / "dist").glob("*.deb"):
            package.rename(into / package.name)
        subprocess.run(["rm", "-r", checkout], check=True)

    return kept_as(f"packages-{commit}", build)
