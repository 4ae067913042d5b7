"""What comes to the API double and what it answers: verbs as rules of roles have them, statuses, watches."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

Object = dict[str, Any]
Key = tuple[str, str, str]
"""Resource, namespace, name."""

Asked = tuple[str, str, str, str]
"""Verb, resource, namespace and name, as rules of roles have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One that came. ``status`` is what was answered; ``resource`` as rules name it, ``verb`` too."""

    verb: str
    resource: str
    namespace: str
    name: str
    body: Any
    status: int

    def __str__(self) -> str:
        """Such as ``patch nodes/status node-1: 200``."""
        where = "/".join(part for part in (self.namespace, self.name) if part)
        return f"{self.verb} {self.resource} {where}: {self.status}"


class No(Exception):
    """The answer is a status that is none of success."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code
        self.words = words


class Watch(web.StreamResponse):
    """Of one object, from what came after a version."""

    def __init__(self, resource: str, name: str, after: int) -> None:
        super().__init__(headers={"Content-Type": "application/json"})
        self.resource = resource
        self.name = name
        self.after = after

    async def say(self, kind: str, value: Object) -> None:
        await self.write(json.dumps({"type": kind, "object": value}).encode() + b"\n")


def asked_for(request: web.Request) -> Asked:
    parts = request.path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if parts and parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    resource, name, *sub = [*parts, "", ""][: max(2, len(parts))]
    collection = "watch" if request.query.get("watch") == "true" else "list"
    verb = {"GET": "get" if name else collection, "POST": "create", "PUT": "update"}.get(
        request.method, request.method.lower()
    )
    return verb, "/".join((resource, *sub)), namespace, name


def in_json(value: Object, status: int = 200) -> web.Response:
    return web.json_response(value, status=status)


def status_of(code: int, words: str, headers: Mapping[str, str]) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "code": code, "message": words}
    return web.json_response(body, status=code, headers=headers)
