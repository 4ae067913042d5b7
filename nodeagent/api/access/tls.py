"""Mutual TLS for the TCP listener: certificates are read again when their files change.

A change that does not fit together (a new certificate without its key, text that is no PEM) is
reported once, and the last good ones stay in use.
"""

import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import grpc

from nodeagent.api.access.sockets import OutletError
from nodeagent.config.sections import GrpcConfig

_log = logging.getLogger(__name__)

Stamp = tuple[tuple[int, int, int], ...]


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
        stats = [path.stat() for path in (self.certificate, self.key, self.client_ca)]
        return tuple((each.st_ino, each.st_mtime_ns, each.st_size) for each in stats)

    def check(self) -> None:
        """Raises ``OutletError`` unless they can be read and fit together."""
        for key, path in (
            ("tls_cert", self.certificate),
            ("tls_key", self.key),
            ("tls_client_ca", self.client_ca),
        ):
            try:
                path.read_bytes()
            except OSError as error:
                raise OutletError(f"grpc.{key}: {path}: {error.strerror}") from error
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certificate, self.key)
        except ssl.SSLError as error:
            raise OutletError(
                f"grpc.tls_cert, grpc.tls_key: {self.certificate} and {self.key} do not fit together: {error}"
            ) from error
        try:
            context.load_verify_locations(self.client_ca)
        except ssl.SSLError as error:
            raise OutletError(
                f"grpc.tls_client_ca: {self.client_ca} holds no certificate: {error}"
            ) from error

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration(
            [(self.key.read_bytes(), self.certificate.read_bytes())],
            root_certificates=self.client_ca.read_bytes(),
        )


def server_credentials(files: ServerCertificateFiles) -> grpc.ServerCredentials:
    """Requires a client certificate. Raises ``OutletError`` if the files are not good now."""
    files.check()
    return grpc.dynamic_ssl_server_credentials(
        files.configuration(), _fetcher(files), require_client_authentication=True
    )


def _fetcher(files: ServerCertificateFiles) -> Callable[[], grpc.ServerCertificateConfiguration | None]:
    """gRPC asks it before each handshake; None means as before."""
    seen = files.stamp()

    def fetch() -> grpc.ServerCertificateConfiguration | None:
        nonlocal seen
        try:
            found = files.stamp()
            if found == seen:
                return None
            seen = found
            files.check()
            fresh = files.configuration()
        except (OSError, OutletError) as error:
            _log.error("certificates changed but cannot be used; the last good ones stay in use: %s", error)
            return None
        _log.info("certificates changed: the new ones are in use")
        return fresh

    return fetch
