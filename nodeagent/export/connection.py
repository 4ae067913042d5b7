"""Connections to a receiver: TLS as the site's files have it, and HTTP that is kept open between requests.

The standard library's client has what is needed here: a kept connection and a time limit. It follows no
redirection and reads no proxy from the environment: events go to the address that was configured.
"""

import http.client
import re
import ssl
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

LARGEST_ANSWER: Final = 64 << 10
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_NOT_IN_AN_ADDRESS: Final = re.compile("[^\x21-\x7e]")
_HEADER_NAME: Final = re.compile("[A-Za-z0-9-]+")
_OWN_HEADERS: Final = ("connection", "content-length", "content-type", "transfer-encoding")
"""What the exporter itself sends, as the request needs it."""


class SetupError(Exception):
    """An option or a file of the export cannot be used; the text names it and what would be right."""


class TlsFiles(NamedTuple):
    """PEM files; None where none is named. Without ``ca`` the authorities of the system are trusted."""

    ca: Path | None
    cert: Path | None
    key: Path | None

    def __bool__(self) -> bool:
        return any(each is not None for each in self)


def tls_context(files: TlsFiles) -> ssl.SSLContext:
    """The receiver's certificate and its name are always checked. Raises ``SetupError``."""
    if (files.cert is None) != (files.key is None):
        raise SetupError("--cert and --key go together: name both, or none")
    try:
        context = ssl.create_default_context(cafile=files.ca)
    except (OSError, ssl.SSLError) as error:
        raise SetupError(f"--ca {files.ca}: holds no certificate that can be read: {error}") from error
    if files.cert is not None and files.key is not None:
        try:
            context.load_cert_chain(files.cert, files.key, password=_no_password)
        except (OSError, ssl.SSLError) as error:
            both = f"--cert {files.cert}, --key {files.key}"
            raise SetupError(f"{both}: cannot be used together: {error}") from error
    return context


def _no_password() -> str:
    """Otherwise OpenSSL asks for it at the terminal."""
    raise ssl.SSLError("the key has a password; store it without one, readable only by this service")


def checked_url(text: str, schemes: Mapping[str, int]) -> SplitResult:
    """The address of a receiver, of one of these schemes. Raises ``SetupError``."""
    forms = " or ".join(f"{scheme}://HOST[:PORT]" for scheme in schemes)
    try:
        url = urlsplit(text)
        is_good = url.scheme in schemes and _is_host(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        url, is_good = urlsplit(""), False
    if not is_good:
        raise SetupError(f"{text!r} is no address of a receiver: {forms} is needed")
    if url.username or url.password:
        raise SetupError("the address holds a password, which every user of the node can see: use --headers")
    if _NOT_IN_AN_ADDRESS.search(text):
        raise SetupError(
            f"{text!r} holds a blank or a character that is not ASCII: write it as %20 or %C3%BC, in the name"
            " of a host as xn--..."
        )
    return url


def _is_host(name: str | None) -> bool:
    try:
        return name is not None and name.encode("idna") != b""
    except UnicodeError:  # an empty label, or one of more than 63 characters
        return False


def http_url(text: str, tls: TlsFiles) -> SplitResult:
    """Raises ``SetupError``."""
    url = checked_url(text, _DEFAULT_PORTS)
    if tls and url.scheme == "http":
        raise SetupError(f"--ca, --cert and --key are for https, and {text} is not encrypted")
    return url


def read_headers(path: Path | None) -> dict[str, str]:
    """``Name: value`` a line, for credentials; ``#`` begins a comment. Raises ``SetupError``."""
    if path is None:
        return {}
    headers = {}
    for number, line in enumerate(read_text(path, "--headers").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or not _HEADER_NAME.fullmatch(name) or not (value.isprintable() and value.isascii()):
            raise SetupError(f"--headers {path}, line {number}: 'Name: value' is needed, in ASCII")
        if name.lower() in _OWN_HEADERS:
            raise SetupError(f"--headers {path}, line {number}: {name} is set by the exporter itself")
        headers[name] = value
    return headers


def read_text(path: Path, option: str) -> str:
    """Raises ``SetupError``."""
    try:
        return path.read_text()
    except OSError as error:
        raise SetupError(f"{option} {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SetupError(f"{option} {path}: no text in UTF-8: {error.reason}") from error


class HttpAnswer(NamedTuple):
    status: int
    reason: str
    retry_after: str | None


class HttpConnection:
    """``timeout_s`` is for each step of a request: the connection, each write, each read."""

    def __init__(self, url: SplitResult, tls: TlsFiles, timeout_s: float) -> None:
        host = url.hostname or ""
        port = (
            url.port or _DEFAULT_PORTS[url.scheme]
        )  # without one, the last part of an IPv6 address is taken
        self._path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        if url.scheme == "https":
            context = tls_context(tls)
            self._client: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=timeout_s, context=context
            )
        else:
            self._client = http.client.HTTPConnection(host, port, timeout=timeout_s)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return self._client.host, self._client.port

    def post(self, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        """Raises ``OSError`` or ``HTTPException`` where no answer comes.

        A receiver may close a kept connection at any time: then one more attempt is made on a new one.
        """
        is_kept = self._client.sock is not None
        try:
            return self._post(body, headers)
        except (ConnectionError, http.client.RemoteDisconnected):
            self.close()
            if not is_kept:
                raise
            return self._post(body, headers)

    def _post(self, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        try:
            self._client.request("POST", self._path, body, dict(headers))
            answer = self._client.getresponse()
            answer.read(LARGEST_ANSWER)
        except BaseException:
            self.close()
            raise
        if not answer.isclosed():  # more than is read: the next answer could not be told from its rest
            self.close()
        return HttpAnswer(answer.status, answer.reason, answer.headers.get("Retry-After"))

    def close(self) -> None:
        with suppress(OSError):
            self._client.close()
