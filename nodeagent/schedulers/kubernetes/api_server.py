"""Does one order by one request to the API server, and says what came of it. It decides and repeats nothing.

Answers are read as plain objects: what a newer server adds to them is no trouble.
"""

import json
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

import aiohttp
from kubernetes.aio.client import (
    ApiClient,
    ApiException,
    AppsV1Api,
    CoreV1Api,
    V1ConfigMap,
    V1DeleteOptions,
    V1Preconditions,
)

from nodeagent.schedulers.kubernetes.cluster import InfoObject, NodeObject
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
from nodeagent.schedulers.kubernetes.state import NOT_FOUND, Done, Failed, Given, Settings

TIMEOUT_S: Final = 10.0
NODED: Final = "noded"
"""``NodeDDaemonSetName`` of MindCluster's component/noded/pkg/common/constants.go."""

MERGE: Final = "application/merge-patch+json"
STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"
"""Merges conditions by their type: those of others stay (``patchMergeKey`` of NodeStatus.conditions)."""

NO_ANSWER: Final = (aiohttp.ClientError, TimeoutError, OSError)


class Answer(NamedTuple):
    """``body`` is {} where it was no JSON object."""

    status: int
    body: Mapping[str, Any]
    retry_after_s: int


class Refused(Exception):
    """The API server said no, or nothing: ``status`` 0."""

    def __init__(self, status: int, words: str, retry_after_s: int = 0) -> None:
        super().__init__(words)
        self.status = status
        self.retry_after_s = retry_after_s


class ApiServer:
    """The few requests that the bridge makes."""

    def __init__(self, client: ApiClient, settings: Settings) -> None:
        self._core = CoreV1Api(client)
        self._apps = AppsV1Api(client)
        self._settings = settings

    async def do(self, order: Order) -> Given:
        """``Done`` with the object as it is now, else ``Failed``."""
        try:
            found = await self._found(order)
        except Refused as refused:
            return Failed(
                order=order,
                status=refused.status,
                words=str(refused),
                retry_after_s=refused.retry_after_s,
                jitter=random.random(),
            )
        return Done(order=order, found=found)

    async def _found(self, order: Order) -> NodeObject | InfoObject | bool | None:
        node = self._settings.node
        match order:
            case Look(target=Target.NODE):
                looked = await self._look(self._core.read_node_without_preload_content(node, **_LIMIT))
                return None if looked is None else NodeObject.of(looked)
            case Look(target=Target.NODED):
                asked = self._apps.read_namespaced_daemon_set_without_preload_content(
                    NODED, NODED_NAMESPACE, **_LIMIT
                )
                return await self._look(asked) is not None
            case Look(target=target):
                asked = self._core.read_namespaced_config_map_without_preload_content(
                    *name_of(self._settings, target), **_LIMIT
                )
                looked = await self._look(asked)
                return None if looked is None else InfoObject.of(looked)
            case SetTaints(resource_version=version, taints=taints):
                body = {"metadata": {"resourceVersion": version}, "spec": {"taints": list(taints)}}
                return NodeObject.of(
                    await _good(
                        self._core.patch_node_without_preload_content(
                            node, body, _content_type=MERGE, **_LIMIT
                        )
                    )
                )
            case SetCondition(condition=condition):
                return NodeObject.of(
                    await _good(
                        self._core.patch_node_status_without_preload_content(
                            node,
                            {"status": {"conditions": [dict(condition)]}},
                            _content_type=STRATEGIC_MERGE,
                            **_LIMIT,
                        )
                    )
                )
            case Create() | Replace() | Delete():
                return await self._written(order)
            case _:
                raise TypeError(f"{order} is no order for the API server")

    async def _written(self, order: Create | Replace | Delete) -> InfoObject | None:
        name, namespace = name_of(self._settings, order.target)
        if isinstance(order, Delete):
            condition = V1Preconditions(resource_version=order.resource_version)
            await _good(
                self._core.delete_namespaced_config_map_without_preload_content(
                    name, namespace, body=V1DeleteOptions(preconditions=condition), **_LIMIT
                )
            )
            return None
        config_map = V1ConfigMap.model_validate(order.config_map)
        if isinstance(order, Create):
            asked = self._core.create_namespaced_config_map_without_preload_content(
                namespace, config_map, **_LIMIT
            )
        else:
            asked = self._core.replace_namespaced_config_map_without_preload_content(
                name, namespace, config_map, **_LIMIT
            )
        return InfoObject.of(await _good(asked))

    async def _look(self, asked: Awaitable[Any]) -> Mapping[str, Any] | None:
        """None where there is none."""
        answer = await answered(asked)
        return None if answer.status == NOT_FOUND else _body(answer)


_LIMIT: Final[dict[str, Any]] = {"_request_timeout": TIMEOUT_S}


async def answered(asked: Awaitable[Any]) -> Answer:
    """Raises ``Refused`` where no answer comes."""
    try:
        response = await asked
        text = await response.read()
    except ApiException as failure:
        raise Refused(failure.status or 0, str(failure.reason)) from failure
    except NO_ANSWER as failure:
        raise Refused(0, f"no answer: {str(failure) or type(failure).__name__}") from failure
    return Answer(response.status, _object(text), retry_after_s(response.headers))


async def _good(asked: Awaitable[Any]) -> Mapping[str, Any]:
    return _body(await answered(asked))


def _body(answer: Answer) -> Mapping[str, Any]:
    if 200 <= answer.status <= 299:
        return answer.body
    words = f"{answer.status} {answer.body.get('message') or answer.body.get('reason') or 'without a reason'}"
    raise Refused(answer.status, words, answer.retry_after_s)


def _object(text: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def retry_after_s(headers: Mapping[str, str]) -> int:
    """The API server gives seconds."""
    text = headers.get("Retry-After", "")
    return int(text) if text.isdigit() else 0


Give = Callable[[Given], None]
