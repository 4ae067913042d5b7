"""Does one order by one request to the API server, and says what came of it. It decides and repeats nothing.

Answers are read as plain objects: what a newer server adds to them is no trouble.
"""

import random
from collections.abc import Mapping
from typing import Any, Final

from kubernetes.aio.client import ApiClient

from nodeagent.schedulers.kubernetes.cluster import Found, InfoObject, NodeObject
from nodeagent.schedulers.kubernetes.decide import name_of
from nodeagent.schedulers.kubernetes.mindcluster.node_info import NAMESPACE as NODED_NAMESPACE
from nodeagent.schedulers.kubernetes.orders import (
    Create,
    Delete,
    Look,
    Order,
    Replace,
    SetCondition,
    SetTaints,
    Target,
)
from nodeagent.schedulers.kubernetes.requests import (
    NOT_UNDERSTOOD,
    Answer,
    Refused,
    answer_of,
    good,
    not_understood,
    opened,
)
from nodeagent.schedulers.kubernetes.state import NOT_FOUND, Done, Failed, Given, Settings

TIMEOUT_S: Final = 10.0
NODED: Final = f"/apis/apps/v1/namespaces/{NODED_NAMESPACE}/daemonsets/noded"
"""``NodeDDaemonSetName`` of MindCluster's component/noded/pkg/common/constants.go."""

MERGE: Final = "application/merge-patch+json"
STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"
"""Merges conditions by their type: those of others stay (``patchMergeKey`` of NodeStatus.conditions)."""


class ApiServer:
    """The few requests that the bridge makes."""

    def __init__(self, client: ApiClient, settings: Settings) -> None:
        self._client = client
        self._settings = settings
        self._node = f"/api/v1/nodes/{settings.node}"

    async def do(self, order: Order) -> Given:
        """``Done`` with the object as it is now, else ``Failed``."""
        try:
            found = await self._understood(order)
        except Refused as refused:
            return Failed(
                order=order,
                status=refused.status,
                words=str(refused),
                retry_after_s=refused.retry_after_s,
                jitter=random.random(),
            )
        return Done(order=order, found=found)

    async def _understood(self, order: Order) -> Found:
        try:
            return await self._found(order)
        except NOT_UNDERSTOOD as failure:
            raise not_understood(failure) from failure

    async def _found(self, order: Order) -> Found:
        match order:
            case Look(target=target):
                return await self._looked(target)
            case SetTaints(resource_version=version, taints=taints):
                patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": list(taints)}}
                return NodeObject.of(good(await self._asked("PATCH", self._node, patch, MERGE)))
            case SetCondition(condition=condition):
                patch = {"status": {"conditions": [dict(condition)]}}
                path = f"{self._node}/status"
                return NodeObject.of(good(await self._asked("PATCH", path, patch, STRATEGIC_MERGE)))
            case Create(target=target, config_map=config_map):
                return InfoObject.of(good(await self._asked("POST", self._folder(target), config_map)))
            case Replace(target=target, config_map=config_map):
                return InfoObject.of(good(await self._asked("PUT", self._path(target), config_map)))
            case Delete(target=target, resource_version=version):
                condition = {"preconditions": {"resourceVersion": version}}
                good(await self._asked("DELETE", self._path(target), condition))
                return None
            case _:
                raise TypeError(f"{order} is no order for the API server")

    async def _looked(self, target: Target) -> Found:
        """None, and False of NODED, where there is none."""
        match target:
            case Target.NODE:
                found = _if_there(await self._asked("GET", self._node))
                return None if found is None else NodeObject.of(found)
            case Target.NODED:
                return _if_there(await self._asked("GET", NODED)) is not None
            case _:
                found = _if_there(await self._asked("GET", self._path(target)))
                return None if found is None else InfoObject.of(found)

    async def _asked(
        self, method: str, path: str, body: object = None, media: str = "application/json"
    ) -> Answer:
        response = await opened(self._client, method, path, body=body, media=media, timeout_s=TIMEOUT_S)
        return await answer_of(response)

    def _folder(self, target: Target) -> str:
        return f"/api/v1/namespaces/{name_of(self._settings, target)[1]}/configmaps"

    def _path(self, target: Target) -> str:
        return f"{self._folder(target)}/{name_of(self._settings, target)[0]}"


def _if_there(answer: Answer) -> Mapping[str, Any] | None:
    return None if answer.status == NOT_FOUND else good(answer)
