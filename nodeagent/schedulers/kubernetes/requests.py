"""One request to the API server, by the official client: its connection, account and certificates.

Its classes for each object are left out: to import them takes seconds and 30 MiB on each node, and they drop
what they do not know.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import aiohttp
from kubernetes.aio.client import ApiClient, ApiException
from kubernetes.aio.config import ConfigException

ACCOUNT: Final = ["BearerToken"]
"""As every request of the client's own classes has it."""

NO_ANSWER: Final = (aiohttp.ClientError, TimeoutError, OSError, ConfigException)
"""``ConfigException``: the account's token, which is read again each minute, is empty or gone."""

NOT_UNDERSTOOD: Final = (AttributeError, KeyError, TypeError, ValueError)
"""What comes of reading an object that is of another form."""


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
        raise Refused(failure.status or 0, str(failure.reason)) from failure
    except NO_ANSWER as failure:
        raise _no_answer(failure) from failure
    response: aiohttp.ClientResponse = answer.response
    return response


async def answer_of(response: aiohttp.ClientResponse) -> Answer:
    """The whole of it, whatever its status. Raises ``Refused`` where it breaks off."""
    try:
        text = await response.read()
    except NO_ANSWER as failure:
        raise _no_answer(failure) from failure
    return Answer(response.status, _object(text), _retry_after_s(response.headers))


def _no_answer(failure: Exception) -> Refused:
    return Refused(0, f"no answer: {str(failure) or type(failure).__name__}")


def not_understood(failure: Exception) -> Refused:
    """The refusal for an answer that says yes and is none of the API server's, such as a page of a proxy."""
    return Refused(0, f"the answer is not understood: {type(failure).__name__}: {failure}")


def good(answer: Answer) -> Mapping[str, Any]:
    """The body of an answer that says yes. Raises ``Refused`` with the server's words for any other."""
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


def _retry_after_s(headers: Mapping[str, str]) -> int:
    """The API server gives seconds."""
    text = headers.get("Retry-After", "")
    return int(text) if text.isdigit() else 0
