"""Certificates read from PEM: whose they are, and until when they are valid.

Python's ``ssl`` shows this only of the certificate of a peer. What is read here is the outline of RFC 5280
(section 4.1), in DER: lengths and tags, a serial number, two times and a common name. No signature is checked
and nothing is trusted: OpenSSL does that.
"""

import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)

_CONSTRUCTED_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
_BMP_STRING: Final = 0x1E
_COMMON_NAME: Final = bytes((0x55, 0x04, 0x03))
"""2.5.4.3 (RFC 5280, appendix A.1)."""

_LONG_LENGTH: Final = 0x80

_Element = tuple[int, bytes]
"""Tag and content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCertificate:
    """``common_name`` is the subject's, "" without one; ``serial`` in hexadecimal, without leading zeros. The
    times are unix times.
    """

    common_name: str
    serial: str
    not_before_s: float
    not_after_s: float


def certificates_in(pem: str) -> list[ReadCertificate]:
    """Those of a file, in its order. Raises ``ValueError`` where one is none."""
    return [_certificate(ssl.PEM_cert_to_DER_cert(block)) for block in _PEM.findall(pem)]


def _certificate(der: bytes) -> ReadCertificate:
    try:
        (_, certificate), *_ = _elements(der)
        (_, to_be_signed), *_ = _elements(certificate)
        fields = [each for each in _elements(to_be_signed) if each[0] != _CONSTRUCTED_VERSION]
        (_, serial), _, _, (_, validity), (_, subject), *_ = fields
        not_before, not_after = _elements(validity)
    except IndexError as error:
        raise ValueError("a certificate ends in its middle") from error
    return ReadCertificate(
        common_name=_common_name(subject),
        serial=f"{int.from_bytes(serial):x}",
        not_before_s=_time_s(not_before),
        not_after_s=_time_s(not_after),
    )


def _elements(der: bytes) -> Iterator[_Element]:
    """The elements of a constructed one. Raises ``IndexError`` or ``ValueError`` if it is cut off."""
    at = 0
    while at < len(der):
        tag, length = der[at], der[at + 1]
        at += 2
        if length & _LONG_LENGTH:
            of_length = length & ~_LONG_LENGTH
            length = int.from_bytes(der[at : at + of_length])
            at += of_length
        if at + length > len(der):
            raise ValueError("a certificate ends in its middle")
        yield tag, der[at : at + length]
        at += length


def _common_name(subject: bytes) -> str:
    for _, alternatives in _elements(subject):
        for _, pair in _elements(alternatives):
            (_, kind), (tag, text) = _elements(pair)
            if kind == _COMMON_NAME:
                return text.decode("utf-16-be" if tag == _BMP_STRING else "utf-8", "replace")
    return ""


def _time_s(element: _Element) -> float:
    """Unix time. Two digits of a year from 50 on are of the last century (RFC 5280, section 4.1.2.5.1)."""
    tag, text = element[0], element[1].decode("ascii")
    if tag == _UTC_TIME:
        text = f"{'19' if text >= '5' else '20'}{text}"
    elif tag != _GENERALIZED_TIME:
        raise ValueError(f"a certificate has a time of the unknown form {tag:#x}")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
