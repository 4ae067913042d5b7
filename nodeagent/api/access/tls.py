"""Mutual TLS for the TCP listener: certificates are read again when their files change.

A change that does not fit together (a new certificate without its key, text that is no PEM) is
reported once, and the last good ones stay in use.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from nodeagent.api.access.sockets import OutletError
from nodeagent.config.sections import GrpcConfig
from nodeagent.system.last_good import LastGood, Stamp, stamp_of
from nodeagent.system.pem_files import PemError, read_each, use_authorities, use_chain


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCertificateFiles:
    """PEM files: the daemon's own chain and key, and the authorities whose clients are admitted."""

    certificate: Path
    key: Path
    client_ca: Path

    @classmethod
    def configured(cls, config: GrpcConfig) -> "ServerCertificateFiles":
        """``grpc.listen`` is set, so these are too."""
        return cls(
            certificate=Path(config.tls_cert), key=Path(config.tls_key), client_ca=Path(config.tls_client_ca)
        )

    def stamp(self) -> Stamp:
        """Whether any of them was changed or replaced. Raises ``OSError``."""
        return stamp_of(self.certificate, self.key, self.client_ca)

    def check(self) -> None:
        """Raises ``OutletError`` unless they can be read and fit together."""
        self.configuration()

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        """Raises ``OutletError`` as ``check`` does."""
        certificate, key = ("grpc.tls_cert:", self.certificate), ("grpc.tls_key:", self.key)
        client_ca = ("grpc.tls_client_ca:", self.client_ca)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            chain, own, authorities = read_each(certificate, key, client_ca)
            use_chain(context, certificate, key)
            use_authorities(context, client_ca)
        except PemError as error:
            raise OutletError(str(error)) from error
        return grpc.ssl_server_certificate_configuration([(own, chain)], root_certificates=authorities)


def server_credentials(files: ServerCertificateFiles) -> grpc.ServerCredentials:
    """Requires a client certificate. Raises ``OutletError`` if the files are not good now."""
    certificates = LastGood("certificates", stamp=files.stamp, make=files.configuration, unusable=OutletError)
    # gRPC asks before each handshake whether there are new ones.
    return grpc.dynamic_ssl_server_credentials(
        certificates.current(), certificates.renewed, require_client_authentication=True
    )
