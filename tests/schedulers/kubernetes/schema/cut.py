"""Cuts what is needed here out of Kubernetes' published schemas: ``README.md`` says which.

python -m tests.schedulers.kubernetes.schema.cut DEFINITIONS SWAGGER
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
REFERENCE: Final = "#/$defs/"
REFERENCE_IN_SWAGGER: Final = "#/definitions/"

KINDS: Final = (
    "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy",
    "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding",
    "io.k8s.api.apps.v1.DaemonSet",
    "io.k8s.api.batch.v1.Job",
    "io.k8s.api.core.v1.ConfigMap",
    "io.k8s.api.core.v1.Node",
    "io.k8s.api.core.v1.PersistentVolumeClaim",
    "io.k8s.api.core.v1.ServiceAccount",
    "io.k8s.api.rbac.v1.ClusterRole",
    "io.k8s.api.rbac.v1.ClusterRoleBinding",
    "io.k8s.api.rbac.v1.Role",
    "io.k8s.api.rbac.v1.RoleBinding",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
)
PATHS: Final = (
    "/api/v1/nodes",
    "/api/v1/nodes/{name}",
    "/api/v1/nodes/{name}/status",
    "/api/v1/namespaces/{namespace}/configmaps",
    "/api/v1/namespaces/{namespace}/configmaps/{name}",
    "/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}",
)
METHODS: Final = ("get", "post", "put", "patch", "delete")


def main(definitions: Path, swagger: Path) -> None:
    every = json.loads(definitions.read_text())["$defs"]
    wanted: dict[str, Any] = {}
    ahead = list(KINDS)
    while ahead:
        name = ahead.pop()
        if name not in wanted:
            wanted[name] = without_words(every[name])
            ahead += references(every[name])
    save("definitions", dict(sorted(wanted.items())))
    paths = json.loads(swagger.read_text())["paths"]
    save("paths", {path: operations(paths[path]) for path in PATHS})


def operations(path: Any) -> dict[str, Any]:
    """Method -> what a request may have: parameters in the query with their types, and types of the body."""
    return {
        method: {
            "query": {
                each["name"]: each["type"]
                for each in (*path.get("parameters", ()), *path[method].get("parameters", ()))
                if each["in"] == "query"
            },
            "body": body_of(path[method]),
            "consumes": path[method]["consumes"],
        }
        for method in METHODS
        if method in path
    }


def body_of(operation: Any) -> str:
    """The name of its schema, "" where a request has no body."""
    found = [each["schema"]["$ref"] for each in operation.get("parameters", ()) if each["in"] == "body"]
    return str(found[0]).removeprefix(REFERENCE_IN_SWAGGER) if found else ""


def references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref":
                yield value.removeprefix(REFERENCE)
            else:
                yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def without_words(schema: Any) -> Any:
    """A property may be called "description" too: that one is an object."""
    if isinstance(schema, dict):
        return {
            key: without_words(value)
            for key, value in schema.items()
            if key != "description" or not isinstance(value, str)
        }
    return [without_words(value) for value in schema] if isinstance(schema, list) else schema


def save(name: str, value: Mapping[str, object]) -> None:
    """One entry a line, so that a new version shows what changed."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(each)}" for key, each in value.items())
    (HERE / f"{name}.json").write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
