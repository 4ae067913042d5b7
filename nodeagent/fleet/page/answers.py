"""Which reply each request gets: the page's own files, the stream of nodes, one node, and why a device has
its verdict. Only GET and HEAD; any other method is refused.

On loopback the Host header has to be a name of loopback: a foreign name that is made to lead here (DNS
rebinding) is refused. Over TLS the certificate already proves the name to the browser. Everything but the
page's files is for the page alone: no other site can make this process ask a node.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from http import HTTPStatus
from importlib import resources
from typing import Final

from nodeagent.fleet.page.changes import FleetChanges
from nodeagent.fleet.page.exchange import PageReply, PageRequest
from nodeagent.fleet.page.questions import DeviceQuestions, NoAnswer
from nodeagent.fleet.page.rows import Form, encoded, milliseconds, node_details
from nodeagent.fleet.state import NodeState, NodeStates

MAX_STREAMS: Final = 64
"""Pages that are open at once."""

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})

_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_FILES: Final[Mapping[str, tuple[str, str]]] = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.mjs": ("page.mjs", "text/javascript; charset=utf-8"),
    "/model.mjs": ("model.mjs", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_OWN_SITE: Final = ("same-origin", "none")
"""Values of Sec-Fetch-Site (Fetch Metadata Request Headers) of the page itself, and of a person who types."""

_log = logging.getLogger(__name__)


class PageAnswers:
    """``host`` is the name that is listened on, where only names of loopback are right, else None."""

    def __init__(
        self, *, node_states: NodeStates, changes: FleetChanges, questions: DeviceQuestions, host: str | None
    ) -> None:
        self._node_states = node_states
        self._changes = changes
        self._questions = questions
        self._names = None if host is None else LOOPBACK_NAMES | {f"[{host}]" if ":" in host else host}
        self._files = _static_files()
        self._streams = 0
        self._routes: Mapping[str, Callable[[PageRequest], Awaitable[PageReply]]] = {
            "/events": self._events,
            "/node": self._node,
            "/why": self._why,
        }

    async def answer(self, request: PageRequest) -> PageReply:
        """Never raises for what a request holds."""
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        if request.place in self._files:
            content_type, body = self._files[request.place]
            return PageReply(status=HTTPStatus.OK, content_type=content_type, body=body)
        try:
            return await self._routes[request.place](request)
        except NoAnswer as error:
            return _json(error.status, {"error": str(error)})
        except Exception:  # noqa: BLE001 # whatever one question causes, the others are answered
            _log.exception("page: %s failed", request.place)
            return _text(
                HTTPStatus.INTERNAL_SERVER_ERROR, "this failed; the log of nodeagent fleet has the error"
            )

    def _refusal(self, request: PageRequest) -> PageReply | None:
        if request.command not in ("GET", "HEAD"):
            return _text(HTTPStatus.METHOD_NOT_ALLOWED, "the page is read only", Allow="GET, HEAD")
        hosts = request.headers.get_all("Host", [])
        if len(hosts) != 1:
            return _text(HTTPStatus.BAD_REQUEST, "a request needs one Host header")
        if self._names is not None and _name(hosts[0]) not in self._names:
            names = ", ".join(sorted(self._names))
            return _text(HTTPStatus.MISDIRECTED_REQUEST, f"this is not {hosts[0]}; come by {names}")
        if request.place not in self._files and request.place not in self._routes:
            return _text(HTTPStatus.NOT_FOUND, "there is only the page at /")
        if request.place in self._routes and _is_foreign(request, hosts[0]):
            return _text(HTTPStatus.FORBIDDEN, "this is for the page itself, and not for another site")
        return None

    async def _events(self, request: PageRequest) -> PageReply:
        if self._streams >= MAX_STREAMS:
            reason = f"{MAX_STREAMS} pages are open already; close one"
            return _text(HTTPStatus.SERVICE_UNAVAILABLE, reason, Retry_After="5")
        if request.command == "HEAD":
            return PageReply(status=HTTPStatus.OK, content_type=_EVENTS)
        stream = self._stream(request.headers.get("Last-Event-ID", ""))
        first = await anext(stream)  # from here on it counts
        return PageReply(status=HTTPStatus.OK, content_type=_EVENTS, body=first, stream=stream)

    async def _stream(self, last_event_id: str) -> AsyncGenerator[bytes, None]:
        self._streams += 1
        try:
            async with aclosing(self._changes.follow(last_event_id)) as events:
                async for event in events:
                    yield event
        finally:
            self._streams -= 1

    async def _node(self, request: PageRequest) -> PageReply:
        state = self._state(request)
        heard_at = self._node_states.heard_at.get(state.endpoint.name)
        return _json(HTTPStatus.OK, node_details(state, heard_at))

    async def _why(self, request: PageRequest) -> PageReply:
        state = self._state(request)
        device = request.parameters.get("device", "")
        if request.command == "HEAD":
            return _json(HTTPStatus.OK, {})
        lines = await self._questions.why(state.endpoint, device)
        return _json(HTTPStatus.OK, {"lines": lines, "at": milliseconds(datetime.now(UTC))})

    def _state(self, request: PageRequest) -> NodeState:
        name = request.parameters.get("node", "")
        state = self._node_states.states.get(name)
        if state is None:
            raise NoAnswer(HTTPStatus.NOT_FOUND, "no such node is followed")
        return state


def _static_files() -> Mapping[str, tuple[str, bytes]]:
    """The type and the content of each, by its path."""
    folder = resources.files("nodeagent.fleet.page") / "static"
    return {
        place: (content_type, (folder / name).read_bytes()) for place, (name, content_type) in _FILES.items()
    }


def _name(host: str) -> str:
    """Without the port, which differs where the page is reached through a tunnel."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower()


def _is_foreign(request: PageRequest, host: str) -> bool:
    """Whether a browser reports that another site asks."""
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    is_own_origin = origin is None or origin.partition("://")[2] == host
    return not is_own_origin or (site is not None and site not in _OWN_SITE)


def _text(status: HTTPStatus, text: str, **headers: str) -> PageReply:
    """``headers`` have ``_`` in place of ``-``."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return PageReply(status=status, body=f"{text}\n".encode(errors="replace"), headers=named)


def _json(status: HTTPStatus, form: Form) -> PageReply:
    return PageReply(status=status, content_type=_JSON, body=encoded(form))
