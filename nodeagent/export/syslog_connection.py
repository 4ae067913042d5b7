"""Sends syslog over TCP or TLS so that the end of a connection acknowledges what was sent on it.

Syslog has no acknowledgement, and what TCP acknowledges is in the receiver's kernel, unread. So a connection
carries one group of messages. We close our direction, and wait until the receiver has closed its own and has
acknowledged our end. A receiver that ends before it has read all resets the connection instead (RFC 2525,
section 2.17; Linux, ``__tcp_close`` and ``tcp_rcv_state_process``): then the group is sent again.

Over TLS the same counts. That a receiver answers ``close_notify`` by its own (RFC 5425, section 4.4) is not
asked for: rsyslog 8.2302 with GnuTLS does not.

It does not show that the receiver has stored what it has read.
"""

import errno
import os
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Final
from urllib.parse import SplitResult

from nodeagent.export.connection import SetupError, TlsFiles, checked_url, tls_context
from nodeagent.export.records import ExportRecord
from nodeagent.export.retries import TAKEN, SendOutcome, SendResult
from nodeagent.export.syslog import counted, message

_PORTS: Final = {"tcp": 601, "tls": 6514}
"""``syslog-conn`` and ``syslog-tls`` in IANA's list."""

_ESTABLISHED: Final = 1
_CLOSED: Final = frozenset({6, 7})
"""``TCP_ESTABLISHED``, ``TCP_TIME_WAIT`` and ``TCP_CLOSE`` of Linux's net/tcp_states.h. In the last two each
side has acknowledged the other's end, or the connection was reset.
"""

_LOOK_EVERY_S: Final = 0.001

MOST_TOGETHER: Final = 64


def syslog_url(text: str, tls: TlsFiles) -> SplitResult:
    """Raises ``SetupError``."""
    url = checked_url(text, _PORTS)
    if tls and url.scheme == "tcp":
        raise SetupError(f"--ca, --cert and --key are for tls, and {text} is not encrypted")
    return url


class SyslogDestination:
    """``timeout_s`` is for each step: the connection, each write, and the receiver's end."""

    def __init__(
        self, url: SplitResult, *, tls: TlsFiles, facility: int, data_id: str, timeout_s: float
    ) -> None:
        self.most = MOST_TOGETHER
        self._address = (url.hostname or "", url.port or _PORTS[url.scheme])
        self._context = tls_context(tls) if url.scheme == "tls" else None
        self._facility = facility
        self._data_id = data_id
        self._timeout_s = timeout_s

    def send(self, records: Sequence[ExportRecord]) -> SendResult:
        group = b"".join(counted(message(each, self._facility, self._data_id)) for each in records)
        try:
            with socket.create_connection(self._address, self._timeout_s) as connection:
                if self._context is None:
                    connection.sendall(group)
                    _check_not_ended(connection)
                    self._end(connection)
                else:
                    self._send_encrypted(self._context, connection, group)
        except ssl.SSLCertVerificationError as error:
            return SendResult(
                outcome=SendOutcome.MISCONFIGURED, reason=f"certificate: {error.verify_message}"
            )
        except TimeoutError:
            return SendResult(outcome=SendOutcome.FAILED, reason=f"no answer within {self._timeout_s:g} s")
        except OSError as error:
            return SendResult(outcome=SendOutcome.FAILED, reason=f"connection: {error.strerror or error}")
        return TAKEN

    def close(self) -> None:
        """Between two groups there is no connection."""

    def _send_encrypted(self, context: ssl.SSLContext, connection: socket.socket, group: bytes) -> None:
        with context.wrap_socket(connection, server_hostname=self._address[0]) as encrypted:
            encrypted.sendall(group)
            _check_not_ended(encrypted)
            with encrypted.unwrap() as plain:
                self._end(plain)

    def _end(self, connection: socket.socket) -> None:
        """Raises ``OSError`` where the receiver has not read all.

        Its kernel answers what is no longer read with a reset, which may come later than the end.
        """
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass  # it has nothing to report to us
        limit_s = time.monotonic() + self._timeout_s
        while _tcp_state(connection) not in _CLOSED:
            if time.monotonic() > limit_s:
                raise TimeoutError
            time.sleep(_LOOK_EVERY_S)
        if error := connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(error, os.strerror(error))


def _check_not_ended(connection: socket.socket) -> None:
    """An end before ours shows nothing of what was read."""
    if _tcp_state(connection) != _ESTABLISHED:
        raise ConnectionResetError(errno.ECONNRESET, "the receiver ended it before it had read all")


def _tcp_state(connection: socket.socket) -> int:
    """The first byte of ``struct tcp_info`` (tcp(7))."""
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
