"""The shipped admission policies, applied as an API server does, with celpy for their CEL.

celpy is not what Kubernetes runs: an expression has to mean the same to both. Whatever cannot be evaluated is
refused, as ``failurePolicy: Fail`` says.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import celpy
import yaml
from celpy.adapter import json_to_cel
from celpy.celtypes import MapType, StringType
from celpy.evaluation import CELEvalError

from tests.schedulers.kubernetes.api_requests import Object

POLICIES: Final = Path(__file__).parents[3] / "packaging/examples/kubernetes/admission.yaml"
ACCOUNT: Final = "system:serviceaccount:kube-system:nodeagent-bridge"
NODE_NAME: Final = "authentication.kubernetes.io/node-name"
"""``NodeNameKey`` of Kubernetes' staging/src/k8s.io/apiserver/pkg/authentication/serviceaccount/util.go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One write as admission sees it: the objects whole, before and after. ``operation`` as policies name it.

    ``before`` is None for CREATE, ``after`` for DELETE.
    """

    operation: str
    resource: str
    namespace: str = ""
    before: Object | None
    after: Object | None
    username: str = ACCOUNT
    extra: Mapping[str, list[str]] = field(default_factory=dict)

    def variables(self) -> dict[str, Any]:
        """What an expression may name."""
        resource, _, subresource = self.resource.partition("/")
        user: dict[str, object] = {"username": self.username}
        if self.extra:
            user["extra"] = self.extra
        request = {
            "operation": self.operation,
            "resource": {"group": "", "version": "v1", "resource": resource},
            "subResource": subresource,
            "namespace": self.namespace,
            "userInfo": user,
        }
        return {"request": request, "object": self.after, "oldObject": self.before}


@cache
def objects() -> list[Any]:
    """Read once: nobody changes them."""
    return list(yaml.safe_load_all(POLICIES.read_text()))


def of_kind(kind: str) -> Iterator[Any]:
    return (each for each in objects() if each["kind"] == kind)


def of_a_pod(node: str) -> dict[str, list[str]]:
    """What the API server knows of the account whose token is that of a pod."""
    return {NODE_NAME: [node]}


def refused(review: Review) -> str:
    """The first reason, "" if it is admitted."""
    bound = {each["spec"]["policyName"] for each in of_kind("ValidatingAdmissionPolicyBinding")}
    policies = [each for each in of_kind("ValidatingAdmissionPolicy") if each["metadata"]["name"] in bound]
    return next(filter(None, (_refused_by(each["spec"], review) for each in policies)), "")


def _refused_by(policy: Any, review: Review) -> str:
    known = {name: json_to_cel(value) for name, value in review.variables().items()}
    try:
        if not _is_matched(policy, review, known):
            return ""
        known["variables"] = variables = MapType()
        for variable in policy["variables"]:
            variables[StringType(variable["name"])] = _value(variable["expression"], known)
        for validation in policy["validations"]:
            if not _value(validation["expression"], known):
                return str(validation["message"])
    except CELEvalError as failure:
        return f"cannot be evaluated: {failure}"
    return ""


def _is_matched(policy: Any, review: Review, known: Mapping[str, Any]) -> bool:
    if not any(
        review.operation in rule["operations"] and review.resource in rule["resources"]
        for rule in policy["matchConstraints"]["resourceRules"]
    ):
        return False
    return all(_value(each["expression"], known) for each in policy["matchConditions"])


def _value(expression: str, known: Mapping[str, Any]) -> Any:
    return _program(expression).evaluate(known)


@cache
def _program(expression: str) -> celpy.Runner:
    environment = _environment()
    return environment.program(environment.compile(expression))


@cache
def _environment() -> celpy.Environment:
    return celpy.Environment()
