"""Certificates, keys and authorities in PEM files that a site names, each error with the name of its option.

Only whether they can be used is checked. Of a key with a passphrase no person is asked, as OpenSSL would do
at the terminal.
"""

import ssl
from pathlib import Path

Named = tuple[str, Path]
"""The option or key that names a file, as an error is to show it, and the file."""


class PemError(Exception):
    """A file cannot be used; the text names it and its option."""


def read_each(*files: Named) -> list[bytes]:
    """Raises ``PemError``."""
    texts = []
    for option, path in files:
        try:
            texts.append(path.read_bytes())
        except OSError as error:
            raise PemError(f"{option} {path}: {error.strerror}") from error
    return texts


def use_chain(context: ssl.SSLContext, certificate: Named, key: Named) -> None:
    """Raises ``PemError``, also where the key is of another certificate."""
    try:
        context.load_cert_chain(certificate[1], key[1], password=_no_passphrase)
    except (OSError, ValueError) as error:
        both = ", ".join(f"{option} {path}" for option, path in (certificate, key))
        raise PemError(f"{both}: they cannot be used together: {error}") from error


def use_authorities(context: ssl.SSLContext, authorities: Named) -> None:
    """Raises ``PemError``."""
    option, path = authorities
    try:
        context.load_verify_locations(path)
    except OSError as error:
        raise PemError(f"{option} {path}: holds no certificate: {error}") from error


def _no_passphrase() -> str:
    raise ValueError("the key is protected by a passphrase; give one without")
