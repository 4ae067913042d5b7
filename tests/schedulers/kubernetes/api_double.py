"""An API server's double: nodes and ConfigMaps over HTTP, with versions, conflicts, patches and watches.

It refuses what the published schemas do not allow, what the roles of the manifest do not grant, and what
the admission policies forbid, and remembers that it did: a test that is through asks for ``wrong``. What it
does not know it refuses as well.
"""

import asyncio
import copy
import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aiohttp import web

from tests.schedulers.kubernetes import schemas
from tests.schedulers.kubernetes.admission import Review, of_a_pod
from tests.schedulers.kubernetes.api_requests import (
    Asked,
    Key,
    No,
    Object,
    Request,
    Watch,
    asked_for,
    in_json,
    status_of,
)
from tests.schedulers.kubernetes.patches import merged, strategically_merged

TOKEN: Final = "token-of-the-service-account"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
OPERATIONS: Final = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE", "delete": "DELETE"}
"""Of each verb, as admission has it."""


@dataclass(kw_only=True)
class Refusal:
    """What is answered in place of the truth, so many times."""

    status: int
    times: int
    headers: Mapping[str, str]
    verbs: frozenset[str]
    resource: str


@dataclass(kw_only=True)
class ApiDouble:
    """``granted`` is asked whether the roles allow a request: (verb, resource, namespace, name); ``refused``
    why admission forbids a write, "" if it does not. The account's token is that of a pod on ``pod_node``.

    ``watches_end``: each ends as soon as it began. ``held``: patches of a status wait for it.
    """

    granted: Callable[[str, str, str, str], bool] = lambda *_: True
    refused: Callable[[Review], str] = lambda _: ""
    pod_node: str = ""
    objects: dict[Key, Object] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    port: int = 0
    tls: ssl.SSLContext | None = None
    watches_end: bool = False
    held: asyncio.Event | None = None
    _version: int = 100
    _oldest: int = 0
    _history: list[tuple[int, str, Key, Object]] = field(default_factory=list)
    _refusals: list[Refusal] = field(default_factory=list)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)
    _watches: set[web.StreamResponse] = field(default_factory=set)
    _runner: web.AppRunner | None = None

    # --- what a test does to it ---

    async def start(self) -> None:
        """On the port it had, if it had one."""
        application = web.Application(client_max_size=2 << 20)
        application.router.add_route("*", "/{path:.*}", self._served)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self.tls)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """No answer to anybody, and no watch goes on."""
        await self.cut_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def refuse(
        self, status: int, times: int = 1, *, verbs: str = "", resource: str = "", **headers: str
    ) -> None:
        """The next requests with these verbs, of this resource ("" stands for all), are answered so."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._refusals.append(
            Refusal(
                status=status,
                times=times,
                headers=named,
                verbs=frozenset(verbs.split()),
                resource=resource,
            )
        )

    def refuse_no_more(self) -> None:
        self._refusals.clear()

    async def cut_watches(self) -> None:
        """Each connection of a watch breaks off."""
        for watch in tuple(self._watches):
            if (request := watch._req) is not None and request.transport is not None:
                request.transport.abort()

    def forget_history(self) -> None:
        """A watch from an old version gets 410."""
        self._oldest = self._version
        self._history.clear()

    async def put(self, key: Key, value: Object) -> None:
        """As another client would write it."""
        await self._store(key, copy.deepcopy(value))

    async def remove(self, key: Key) -> None:
        gone = self.objects.pop(key)
        await self._notify("DELETED", key, gone)

    # --- what it serves ---

    async def _served(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        asked = asked_for(request)
        if self.held is not None and asked[:2] == ("patch", "nodes/status"):
            await self.held.wait()
        try:
            body = json.loads(text) if text else None
            answer = await self._answered(request, asked, body)
        except No as no:
            body = text
            answer = status_of(no.code, no.words, {})
        verb, resource, namespace, name = asked
        self.requests.append(
            Request(
                verb=verb, resource=resource, namespace=namespace, name=name, body=body, status=answer.status
            )
        )
        if isinstance(answer, Watch):
            return await self._watched(request, answer)
        return answer

    async def _answered(self, request: web.Request, asked: Asked, body: Any) -> web.StreamResponse:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if (scheme.lower(), token) != ("bearer", TOKEN):  # RFC 9110, 11.1: a scheme has no case
            raise No(401, "Unauthorized")
        self._checked(request, body)
        if not self.granted(*asked):
            self.wrong.append(f"the roles do not grant: {' '.join(asked)}")
            raise No(403, f"forbidden: {' '.join(asked)}")
        if (refusal := self._refusal_for(asked[0], asked[1])) is not None:
            return refusal
        verb, resource, namespace, name = asked
        key = (resource.partition("/")[0], namespace, name)
        match verb:
            case "get":
                return in_json(self._found(key))
            case "list" | "watch":
                return self._listed(request, key[0], verb)
            case "create":
                key = (key[0], namespace, body["metadata"]["name"])
                if key in self.objects:
                    raise No(409, f"{key[0]} {key[2]} already exists")
                return in_json(await self._written(asked, key, body), 201)
            case "update":
                self._unchanged(self._found(key), body)
                return in_json(await self._written(asked, key, body))
            case "patch":
                return in_json(await self._patched(asked, key, request.content_type, body))
            case "delete":
                self._unchanged(self._found(key), {"metadata": (body or {}).get("preconditions", {})})
                self._admit(asked, key, None)
                await self.remove(key)
                return status_of(200, "", {})
            case _:
                raise No(405, f"{verb} is not served here")

    def _checked(self, request: web.Request, body: Any) -> None:
        """Against the published schemas."""
        found = schemas.operation(request.method, request.path)
        if found is None:
            self.wrong.append(f"the API has no {request.method} {request.path}")
            raise No(404, "no such path")
        _, operation = found
        wrong = schemas.wrong_with_query(operation["query"], request.query)
        media = operation["consumes"]
        if body is not None and "*/*" not in media and request.content_type not in media:
            wrong.append(f"Content-Type {request.content_type} is none of {media}")
        if body is not None and operation["body"] and not operation["body"].endswith(".Patch"):
            wrong += schemas.wrong_with(operation["body"], body)
        if wrong:
            self.wrong += [f"{request.method} {request.path}: {each}" for each in wrong]
            raise No(422, "; ".join(wrong))

    def _refusal_for(self, verb: str, resource: str) -> web.Response | None:
        for refusal in self._refusals:
            is_meant = (not refusal.verbs or verb in refusal.verbs) and refusal.resource in ("", resource)
            if refusal.times and is_meant:
                refusal.times -= 1
                return status_of(refusal.status, f"told to answer {refusal.status}", refusal.headers)
        return None

    def _found(self, key: Key) -> Object:
        if key not in self.objects:
            raise No(404, f'{key[0]} "{key[2]}" not found')
        return self.objects[key]

    def _unchanged(self, standing: Object, given: Object) -> None:
        version = given.get("metadata", {}).get("resourceVersion")
        if version is not None and version != standing["metadata"]["resourceVersion"]:
            raise No(409, "the object has been modified; please apply your changes to the latest version")

    async def _patched(self, asked: Asked, key: Key, media: str, patch: Object) -> Object:
        resource = asked[1]
        standing = self._found(key)
        self._unchanged(standing, patch)
        if resource == "nodes/status":
            patch = {part: patch[part] for part in patch if part in ("metadata", "status")}
        elif resource == "nodes":
            patch = {part: patch[part] for part in patch if part != "status"}
        if media == MERGE:
            fresh = merged(standing, patch)
        elif media == STRATEGIC:
            fresh = strategically_merged(schemas.NODE, standing, patch)
        else:
            raise No(415, f"{media} is not served here")
        if wrong := schemas.wrong_with(schemas.NODE, fresh):
            self.wrong += wrong
            raise No(422, "; ".join(wrong))
        return await self._written(asked, key, fresh)

    async def _written(self, asked: Asked, key: Key, value: Object) -> Object:
        """As the account writes it. The server notes who wrote, and admission sees that as well."""
        writer = {"manager": f"bridge-{self._version}", "operation": "Update"}
        fresh = {**value, "metadata": {**value["metadata"], "managedFields": [writer]}}
        self._admit(asked, key, fresh)
        return await self._store(key, fresh)

    def _admit(self, asked: Asked, key: Key, after: Object | None) -> None:
        verb, resource, namespace, _ = asked
        review = Review(
            operation=OPERATIONS[verb],
            resource=resource,
            namespace=namespace,
            before=self.objects.get(key),
            after=after,
            extra=of_a_pod(self.pod_node),
        )
        if why := self.refused(review):
            self.wrong.append(f"admission forbids {' '.join(asked)}: {why}")
            raise No(403, f'{key[0]} "{key[2]}" is forbidden: {why}')

    def _listed(self, request: web.Request, resource: str, verb: str) -> web.StreamResponse:
        name = request.query["fieldSelector"].removeprefix("metadata.name=")
        if verb == "watch":
            return Watch(resource, name, int(request.query["resourceVersion"]))
        items = [each for key, each in self.objects.items() if key[0] == resource and key[2] == name]
        return in_json(
            {"kind": "NodeList", "metadata": {"resourceVersion": str(self._version)}, "items": items}
        )

    async def _watched(self, request: web.Request, watch: "Watch") -> web.StreamResponse:
        await watch.prepare(request)
        self._watches.add(watch)
        seen = watch.after
        try:
            if seen < self._oldest:
                await watch.say("ERROR", {"code": 410, "message": "too old resource version"})
                return watch
            while not self.watches_end:
                for version, kind, key, value in tuple(self._history):
                    if version > seen and (key[0], key[2]) == (watch.resource, watch.name):
                        await watch.say(kind, value)
                        seen = version
                async with self._news:
                    await self._news.wait()
            return watch
        except ConnectionError:
            return watch
        finally:
            self._watches.discard(watch)

    async def _store(self, key: Key, value: Object) -> Object:
        kind = "MODIFIED" if key in self.objects else "ADDED"
        self._version += 1
        value["metadata"] = {**value["metadata"], "resourceVersion": str(self._version)}
        self.objects[key] = value
        await self._notify(kind, key, value)
        return value

    async def _notify(self, kind: str, key: Key, value: Object) -> None:
        if kind == "DELETED":
            self._version += 1
        self._history.append((self._version, kind, key, copy.deepcopy(value)))
        async with self._news:
            self._news.notify_all()
