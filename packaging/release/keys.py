"""The OpenPGP keys of a release: signs with them, and publishes their public halves.

They lie in the key ring of whoever calls (``GNUPGHOME``), and no secret leaves it: gpg signs, and asks for a
passphrase itself.
"""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from release.commands import Refused, run, say

APT: Final = "nodeagent.gpg"
"""All keys in one file, as apt takes them: of an armored file it reads the first block."""
RPM: Final = "nodeagent.asc"
"""A block for each key, as rpm takes them."""

_GPG: Final = ("gpg", "--batch", "--no-tty")
_SIGN: Final = (*_GPG, "--yes", "--digest-algo=SHA256")
_RSA: Final = "1"
"""Of the algorithms for public keys (RFC 4880, 9.1)."""


@dataclass(frozen=True)
class Keys:
    """Each signs what one signature is enough of; the first one signs the rpms, which take one."""

    fingerprints: Sequence[str]

    @classmethod
    def named(cls, names: Sequence[str]) -> "Keys":
        """Those that gpg finds by these names. Raises Refused where it is not one each, or it cannot sign."""
        if sys.stdin.isatty():
            os.environ["GPG_TTY"] = os.ttyname(sys.stdin.fileno())  # where it asks for a passphrase
        return cls(tuple(_that_signs(_fingerprint(name)) for name in names))

    def sign_inside(self, source: Path, into: Path) -> None:
        """The text of the source with its signature around it."""
        into.unlink(missing_ok=True)
        run(*_SIGN, *self._users(), "--clear-sign", "--output", into, source)

    def sign_beside(self, source: Path, into: Path | None = None) -> None:
        into = into or source.with_name(f"{source.name}.asc")
        into.unlink(missing_ok=True)
        run(*_SIGN, *self._users(), "--armor", "--detach-sign", "--output", into, source)

    def sign_rpms(self, rpms: Sequence[Path]) -> None:
        """In place. ``rpmsign --delsign`` makes of each what it was before."""
        gpg = shutil.which("gpg") or "gpg"  # rpm of Debian looks for gpg2, which Debian has no more
        own = {"__gpg": gpg, "_gpg_name": self.fingerprints[0], "_gpg_digest_algo": "sha256"}
        run("rpmsign", *(f"--define={name} {value}" for name, value in own.items()), "--addsign", *rpms)

    def publish(self, folder: Path) -> None:
        """Puts the public keys into the folder, beside those whose signatures are there already."""
        with tempfile.TemporaryDirectory() as home:
            ring = (*_GPG, f"--homedir={home}", "--no-autostart", "--quiet")
            new = Path(home) / "new"
            run(*_GPG, "--output", new, "--export-options=export-minimal", "--export", *self.fingerprints)
            run(*ring, "--import", *(path for path in (folder / APT, new) if path.exists()))
            (folder / APT).unlink(missing_ok=True)
            run(*ring, "--output", folder / APT, "--export")
            blocks = [run(*ring, "--armor", "--export", key) for key in _listed(run(*ring, *_LIST))]
        (folder / RPM).unlink(missing_ok=True)
        (folder / RPM).write_text("".join(blocks))

    def _users(self) -> list[str]:
        return [f"--local-user={fingerprint}" for fingerprint in self.fingerprints]


_LIST: Final = ("--with-colons", "--list-keys")
_UNFIT: Final = {"e": "has expired", "r": "is revoked", "d": "is disabled", "i": "is not valid"}
"""By the validity of a key in a listing with colons (doc/DETAILS of GnuPG)."""


def _listed(listing: str) -> dict[str, str]:
    """The validity of each primary key in a listing with colons, by fingerprint."""
    found = re.findall(r"^(?:sec|pub):(.?):.*\nfpr:{9}(\w+):", listing, re.MULTILINE)
    return {fingerprint: validity for validity, fingerprint in found}


def _fingerprint(name: str) -> str:
    if Path(name).is_file():
        raise Refused(f"--key {name} is a file; right is: gpg --import {name}, and the fingerprint it tells")
    listing = (*_GPG, "--with-colons", "--list-secret-keys")
    there = _listed(run(*listing))
    try:
        found = _listed(run(*listing, "--", name))
    except Refused:  # so gpg says that there is none
        found = {}
    if len(found) != 1:
        what = "fits several of the secret keys" if found else "is none of the secret keys"
        raise Refused(
            f"--key {name} {what} in the key ring; right is the fingerprint of one: "
            f"{', '.join(found or there) or 'there is none (gpg --import, or GNUPGHOME)'}"
        )
    ((fingerprint, validity),) = found.items()
    if validity in _UNFIT:
        raise Refused(f"--key {fingerprint} {_UNFIT[validity]}; right is one that signs (docs/releasing.md)")
    return fingerprint


def _that_signs(fingerprint: str) -> str:
    """Tried before the build: a signature may take a passphrase, and an expired key makes none."""
    with tempfile.TemporaryDirectory() as scratch:
        text = Path(scratch) / "text"
        text.write_text("nodeagent\n")
        told = run(*_SIGN, "--status-fd=1", f"--local-user={fingerprint}", "--output", f"{text}.asc",
                   "--detach-sign", text)  # fmt: skip
    made = re.search(r"^\[GNUPG:\] SIG_CREATED \S (?P<algorithm>\d+) ", told, re.MULTILINE)
    if made is None or made["algorithm"] != _RSA:
        raise Refused(
            f"--key {fingerprint} is not of RSA, the one kind that the rpm of each distribution takes; "
            "right is one of: gpg --quick-generate-key NAME rsa4096 sign 3y"
        )
    say(f"signing with {fingerprint}")
    return fingerprint
