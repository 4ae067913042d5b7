"""Throw-away keys of OpenPGP, in a key ring of their own."""

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class KeyRing:
    folder: Path

    def make(self, name: str, algorithm: str = "rsa2048", until: str = "1y") -> str:
        """A key without a passphrase; its fingerprint."""
        new = ("--passphrase", "", "--quick-generate-key", name, algorithm, "sign", until)
        self.gpg(*new)
        return self.fingerprint(name)

    def fingerprint(self, name: str) -> str:
        (found,) = re.findall(r"^fpr:{9}(\w+):", self.gpg("--with-colons", "--list-keys", name), re.MULTILINE)
        return str(found)

    def gpg(self, *arguments: str) -> str:
        command = ["gpg", "--batch", "--no-tty", "--quiet", *arguments]
        env = {**os.environ, "GNUPGHOME": str(self.folder)}
        done = subprocess.run(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextlib.contextmanager
def key_ring(folder: Path) -> Iterator[KeyRing]:
    """An empty one. In the end the agent that gpg has started for it is gone."""
    folder.chmod(0o700)
    try:
        yield KeyRing(folder)
    finally:
        env = {**os.environ, "GNUPGHOME": str(folder)}
        subprocess.run(["gpgconf", "--kill", "all"], env=env, timeout=60, check=True)
