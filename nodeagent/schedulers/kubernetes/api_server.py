"""Requests to the API server, by the official client: its connection, account and certificates.

``ApiServer`` turns one effect into one request and returns its result. It decides and repeats nothing.
Answers are read as plain objects: fields that a newer server adds are ignored. The client's classes for each
object are not used: their import takes seconds and 30 MiB on each node, and they drop fields that they do
not know.
"""

import json
import random
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import aiohttp
from kubernetes.aio.client import ApiClient, ApiException
from kubernetes.aio.config import ConfigException

from nodeagent.schedulers.kubernetes.cluster import Found, InfoObject, NodeObject
from nodeagent.schedulers.kubernetes.decide import name_of
from nodeagent.schedulers.kubernetes.node_info import NAMESPACE as NODED_NAMESPACE
from nodeagent.schedulers.kubernetes.state import (
    NOT_FOUND,
    ClusterEffect,
    ClusterInput,
    ClusterSettings,
    CreateConfigMap,
    DeleteConfigMap,
    ReadObject,
    ReplaceConfigMap,
    RequestDone,
    RequestFailed,
    SetCondition,
    SetTaints,
    Target,
)

ACCOUNT: Final = ["BearerToken"]
"""As every request of the client's own classes has it."""

NO_ANSWER: Final = (aiohttp.ClientError, TimeoutError, OSError, ConfigException)
"""``ConfigException``: the account's token, which is read again each minute, is empty or gone."""

NOT_UNDERSTOOD: Final = (AttributeError, KeyError, TypeError, ValueError)
"""What comes of reading an object that is of another form."""


class ApiAnswer(NamedTuple):
    """``body`` is {} where it was no JSON object."""

    status: int
    body: Mapping[str, Any]
    retry_after_s: int


class RequestRefused(Exception):
    """The API server said no, or nothing: ``status`` 0."""

    def __init__(self, status: int, reason: str, retry_after_s: int = 0) -> None:
        super().__init__(reason)
        self.status = status
        self.retry_after_s = retry_after_s


async def opened(
    client: ApiClient,
    method: str,
    path: str,
    *,
    query: Mapping[str, str] | None = None,
    body: object = None,
    media: str = "application/json",
    timeout_s: float,
) -> aiohttp.ClientResponse:
    """The response, whose body is yet to be read. Raises ``Refused`` where none comes."""
    try:
        parameters = await client.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params={"Accept": "application/json", "Content-Type": media},
            body=body,
            auth_settings=ACCOUNT,
        )
        answer = await client.call_api(*parameters, _request_timeout=timeout_s)
    except ApiException as failure:
        raise RequestRefused(failure.status or 0, str(failure.reason)) from failure
    except NO_ANSWER as failure:
        raise _no_answer(failure) from failure
    response: aiohttp.ClientResponse = answer.response
    return response


async def answer_of(response: aiohttp.ClientResponse) -> ApiAnswer:
    """The whole of it, whatever its status. Raises ``Refused`` where it breaks off."""
    try:
        text = await response.read()
    except NO_ANSWER as failure:
        raise _no_answer(failure) from failure
    return ApiAnswer(response.status, _object(text), _retry_after_s(response.headers))


def _no_answer(failure: Exception) -> RequestRefused:
    return RequestRefused(0, f"no answer: {str(failure) or type(failure).__name__}")


def not_understood(failure: Exception) -> RequestRefused:
    """The refusal for an answer that says yes and is none of the API server's, such as a page of a proxy."""
    return RequestRefused(0, f"the answer is not understood: {type(failure).__name__}: {failure}")


def good(answer: ApiAnswer) -> Mapping[str, Any]:
    """The body of an answer that says yes. Raises ``Refused`` with the server's message for any other."""
    if 200 <= answer.status <= 299:
        return answer.body
    reason = (
        f"{answer.status} {answer.body.get('message') or answer.body.get('reason') or 'without a reason'}"
    )
    raise RequestRefused(answer.status, reason, answer.retry_after_s)


def _object(text: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _retry_after_s(headers: Mapping[str, str]) -> int:
    """The API server gives seconds."""
    text = headers.get("Retry-After", "")
    return int(text) if text.isdigit() else 0


TIMEOUT_S: Final = 10.0
NODED: Final = f"/apis/apps/v1/namespaces/{NODED_NAMESPACE}/daemonsets/noded"
"""``NodeDDaemonSetName`` of MindCluster's component/noded/pkg/common/constants.go."""

MERGE: Final = "application/merge-patch+json"
STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"
"""Merges conditions by their type: those of others stay (``patchMergeKey`` of NodeStatus.conditions)."""


class ApiServer:
    """The few requests that the bridge makes."""

    def __init__(self, client: ApiClient, settings: ClusterSettings) -> None:
        self._client = client
        self._settings = settings
        self._node = f"/api/v1/nodes/{settings.node}"

    async def perform(self, effect: ClusterEffect) -> ClusterInput:
        """``Done`` with the object as it is now, else ``Failed``."""
        try:
            found = await self._understood(effect)
        except RequestRefused as refused:
            return RequestFailed(
                effect=effect,
                status=refused.status,
                reason=str(refused),
                retry_after_s=refused.retry_after_s,
                jitter=random.random(),
            )
        return RequestDone(effect=effect, found=found)

    async def _understood(self, effect: ClusterEffect) -> Found:
        try:
            return await self._found(effect)
        except NOT_UNDERSTOOD as failure:
            raise not_understood(failure) from failure

    async def _found(self, effect: ClusterEffect) -> Found:
        match effect:
            case ReadObject(target=target):
                return await self._looked(target)
            case SetTaints(resource_version=version, taints=taints):
                patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": list(taints)}}
                return NodeObject.of(good(await self._asked("PATCH", self._node, patch, MERGE)))
            case SetCondition(condition=condition):
                patch = {"status": {"conditions": [dict(condition)]}}
                path = f"{self._node}/status"
                return NodeObject.of(good(await self._asked("PATCH", path, patch, STRATEGIC_MERGE)))
            case CreateConfigMap(target=target, config_map=config_map):
                return InfoObject.of(good(await self._asked("POST", self._folder(target), config_map)))
            case ReplaceConfigMap(target=target, config_map=config_map):
                return InfoObject.of(good(await self._asked("PUT", self._path(target), config_map)))
            case DeleteConfigMap(target=target, resource_version=version):
                condition = {"preconditions": {"resourceVersion": version}}
                good(await self._asked("DELETE", self._path(target), condition))
                return None
            case _:
                raise TypeError(f"{effect} is no effect for the API server")

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
    ) -> ApiAnswer:
        response = await opened(self._client, method, path, body=body, media=media, timeout_s=TIMEOUT_S)
        return await answer_of(response)

    def _folder(self, target: Target) -> str:
        return f"/api/v1/namespaces/{name_of(self._settings, target)[1]}/configmaps"

    def _path(self, target: Target) -> str:
        return f"{self._folder(target)}/{name_of(self._settings, target)[0]}"


def _if_there(answer: ApiAnswer) -> Mapping[str, Any] | None:
    return None if answer.status == NOT_FOUND else good(answer)
