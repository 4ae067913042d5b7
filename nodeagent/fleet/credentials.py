"""The certificate for the nodes, from files that are read again once they have changed.

An open connection continues with its old certificate; the next one takes the new certificate. Files that do
not fit together at that moment are reported, and the last good ones are used.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc

from nodeagent.system.last_good import LastGood, Stamp, stamp_of

_OPTIONS: Final = ("--ca", "--cert", "--key")


class CredentialsError(Exception):
    """The files cannot be used; the text names option and file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCertificateFiles:
    """PEM files: the authorities that sign nodes' certificates, our own chain, its key."""

    authorities: Path
    certificate: Path
    key: Path

    @property
    def _all(self) -> tuple[Path, Path, Path]:
        return (self.authorities, self.certificate, self.key)

    def stamp(self) -> Stamp:
        """Whether any was changed or replaced. Raises ``OSError``."""
        return stamp_of(*self._all)

    def read(self) -> grpc.ChannelCredentials:
        """Raises ``CredentialsError`` unless they can be read and fit together."""
        texts = []
        for option, path in zip(_OPTIONS, self._all, strict=True):
            try:
                texts.append(path.read_bytes())
            except OSError as error:
                raise CredentialsError(f"{option} {path}: {error.strerror}") from error
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(self.authorities)
        except ssl.SSLError as error:
            raise CredentialsError(f"--ca {self.authorities}: holds no certificate: {error}") from error
        try:
            context.load_cert_chain(self.certificate, self.key)
        except ssl.SSLError as error:
            both = f"--cert {self.certificate}, --key {self.key}"
            raise CredentialsError(f"{both}: they do not fit together: {error}") from error
        authorities, certificate, key = texts
        return grpc.ssl_channel_credentials(authorities, key, certificate)


class Credentials(LastGood[grpc.ChannelCredentials]):
    """What is good now. Raises ``CredentialsError`` where the files are not good at the start."""

    def __init__(self, files: ClientCertificateFiles) -> None:
        super().__init__("certificates", stamp=files.stamp, make=files.read, unusable=CredentialsError)
