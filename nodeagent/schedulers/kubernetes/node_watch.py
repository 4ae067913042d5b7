"""Follows this node's own object at the API server: list, then watch, and again whenever that breaks.

It reads no other node. What a broken watch missed, the next list shows. A watch that ends on time is followed
by the next; one that fails, after a growing pause.
"""

import asyncio
import json
import logging
import random
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from kubernetes.aio.client import ApiClient

from nodeagent.schedulers.kubernetes.api_server import (
    NO_ANSWER,
    NOT_UNDERSTOOD,
    TIMEOUT_S,
    RequestRefused,
    answer_of,
    good,
    not_understood,
    opened,
)
from nodeagent.schedulers.kubernetes.cluster import NodeObject
from nodeagent.schedulers.kubernetes.state import ClusterInput, ObjectSeen, Target, Trouble, trouble_after

log = logging.getLogger(__name__)

NODES: Final = "/api/v1/nodes"
LENGTH_S: Final = 240
"""The server ends the watch then; a connection that died without a word is noticed a little later."""

SHORTEST_S: Final = 1.0
"""A server that ends each watch sooner is not asked again and again without a pause."""

_OK: Final = 200

Give = Callable[[ClusterInput], None]


class NodeWatch:
    """``run`` never ends by itself."""

    def __init__(self, client: ApiClient, node: str, give: Give) -> None:
        self._client = client
        self._selector = {"fieldSelector": f"metadata.name={node}"}
        self._give = give

    async def run(self) -> None:
        trouble: Trouble | None = None
        while True:
            try:
                await self._once()
                trouble = None
            except RequestRefused as refused:
                if trouble is None or trouble.reason != str(refused):
                    log.warning("the watch of the Node broke and begins again: %s", refused)
                now_ns = time.monotonic_ns()
                trouble = trouble_after(trouble, str(refused), refused.retry_after_s, random.random(), now_ns)
                await asyncio.sleep((trouble.not_before_ns - now_ns) / 1e9)

    async def _once(self) -> None:
        """Raises ``Refused`` where it breaks."""
        try:
            version = await self._list()
            begun_s = time.monotonic()
            await self._watch(version)
        except NOT_UNDERSTOOD as failure:
            raise not_understood(failure) from failure
        if time.monotonic() - begun_s < SHORTEST_S:
            raise RequestRefused(0, "the watch ended at once")

    async def _list(self) -> str:
        """Gives the node as it is, and the version to watch from."""
        response = await opened(self._client, "GET", NODES, query=self._selector, timeout_s=TIMEOUT_S)
        found = good(await answer_of(response))
        self._see(next(iter(found.get("items") or ()), None))
        return str(found["metadata"]["resourceVersion"])

    async def _watch(self, version: str) -> None:
        """Until the server ends it. Raises ``Refused`` where it breaks."""
        query = {
            **self._selector,
            "watch": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(LENGTH_S),
        }
        response = await opened(self._client, "GET", NODES, query=query, timeout_s=LENGTH_S + TIMEOUT_S)
        if response.status != _OK:
            good(await answer_of(response))
        try:
            async for line in response.content:
                self._take(json.loads(line))
        except NO_ANSWER as failure:
            raise RequestRefused(0, str(failure) or type(failure).__name__) from failure
        finally:
            response.close()

    def _take(self, event: Mapping[str, Any]) -> None:
        """ERROR holds a Status, such as 410 where the version is too old: the list comes next."""
        match event["type"]:
            case "ADDED" | "MODIFIED":
                self._see(event["object"])
            case "DELETED":
                self._see(None)
            case "ERROR":
                status = event["object"]
                raise RequestRefused(
                    int(status.get("code") or 0), f"{status.get('code')} {status.get('message')}"
                )

    def _see(self, node: Mapping[str, Any] | None) -> None:
        self._give(ObjectSeen(target=Target.NODE, found=None if node is None else NodeObject.of(node)))
