"""Until when the certificates of the API's TCP listener are valid, read again when their files change.

As the listener does, it keeps the last good ones while the files do not fit together. Without a listener on
TCP there are none. It checks no certificate: that is the listener's part.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from nodeagent.api.access.certificates import ReadCertificate, certificates_in
from nodeagent.api.access.sockets import OutletError
from nodeagent.api.access.tls import ServerCertificateFiles
from nodeagent.system.last_good import Stamp

SERVER: Final = "server"
CLIENT_CA: Final = "client_ca"

_LABELS: Final = ("use", "common_name", "serial")


class CertificateTimes:
    """Of these files; None: of no files."""

    def __init__(self, files: ServerCertificateFiles | None) -> None:
        self._files = files
        self._seen: Stamp | None = None
        self._read: dict[tuple[str, str, str], ReadCertificate] = {}

    def families(self) -> Iterator[Metric]:
        begin = GaugeMetricFamily(
            "nodeagent_certificate_begin_timestamp_seconds",
            "When the same certificate became valid, unix time.",
            labels=_LABELS,
        )
        expiry = GaugeMetricFamily(
            "nodeagent_certificate_expiry_timestamp_seconds",
            "When a certificate of the API's TCP listener expires, unix time: one of its own chain (server),"
            " or an authority whose clients are admitted (client_ca).",
            labels=_LABELS,
        )
        if self._files is not None:
            self._read_changed(self._files)
        for labels, certificate in self._read.items():
            begin.add_metric(labels, certificate.not_before_s)
            expiry.add_metric(labels, certificate.not_after_s)
        yield from (expiry, begin)

    def _read_changed(self, files: ServerCertificateFiles) -> None:
        try:
            found = files.stamp()
            if found == self._seen:
                return
            self._seen = found
            files.check()
            self._read = {
                (use, each.common_name, each.serial): each
                for use, path in ((SERVER, files.certificate), (CLIENT_CA, files.client_ca))
                for each in _certificates_of(path)
            }
        except (OSError, OutletError, ValueError):
            return  # the listener reports it, and keeps the last good ones


def _certificates_of(path: Path) -> list[ReadCertificate]:
    return certificates_in(path.read_text(encoding="utf-8", errors="replace"))
