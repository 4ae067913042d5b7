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
from nodeagent.system.pem_files import PemError, read_each, use_authorities, use_chain

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
        authorities, certificate, key = named = tuple(zip(_OPTIONS, self._all, strict=True))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            texts = read_each(*named)
            use_authorities(context, authorities)
            use_chain(context, certificate, key)
        except PemError as error:
            raise CredentialsError(str(error)) from error
        trusted, chain, own = texts
        return grpc.ssl_channel_credentials(trusted, own, chain)


class Credentials(LastGood[grpc.ChannelCredentials]):
    """What is good now. Raises ``CredentialsError`` where the files are not good at the start."""

    def __init__(self, files: ClientCertificateFiles) -> None:
        super().__init__("certificates", stamp=files.stamp, make=files.read, unusable=CredentialsError)
