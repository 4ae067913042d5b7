"""The shipped manifest: its objects, and what its roles grant."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

MANIFEST: Final = Path(__file__).parents[3] / "packaging/examples/kubernetes/bridge.yaml"
IMAGE: Final = "registry.example.com/nodeagent:0.2.0"

Right = tuple[str, str, str]
"""Verb, resource, namespace; "" for the whole cluster."""


def objects() -> list[Any]:
    """As they are applied, by envsubst as docs/kubernetes.md has it."""
    substituted = subprocess.run(
        ["envsubst", "$NODEAGENT_IMAGE"],
        input=MANIFEST.read_text(), env={**os.environ, "NODEAGENT_IMAGE": IMAGE},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return list(yaml.safe_load_all(substituted.stdout))


def pod() -> Any:
    """What each node is to run."""
    (pods,) = (each for each in objects() if each["kind"] == "DaemonSet")
    return pods["spec"]["template"]["spec"]


def rights() -> dict[Right, list[str]]:
    """Each right, with the names that it is for: [] for all."""
    return {
        (verb, resource, role["metadata"].get("namespace", "")): rule.get("resourceNames", [])
        for role in _bound_roles()
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def granted(verb: str, resource: str, namespace: str, name: str) -> bool:
    names = rights().get((verb, resource, namespace))
    return names is not None and (not names or name in names)


def _bound_roles() -> Iterator[Any]:
    """Those that a binding gives to the account under which the pods run."""
    every = objects()
    (pods,) = (each for each in every if each["kind"] == "DaemonSet")
    account = (pods["spec"]["template"]["spec"]["serviceAccountName"], pods["metadata"]["namespace"])
    for binding in every:
        subjects = [(each["name"], each["namespace"]) for each in binding.get("subjects", ())]
        if account in subjects:
            for role in every:
                if (role["kind"], role["metadata"]["name"]) == (
                    binding["roleRef"]["kind"],
                    binding["roleRef"]["name"],
                ):
                    yield role
