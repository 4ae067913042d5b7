"""The two merges of the API server that are used: by RFC 7386, and by the keys that the schema names."""

from typing import Any

from tests.schedulers.kubernetes.schemas import DEFINITIONS


def merged(standing: Any, patch: Any) -> Any:
    """RFC 7386, section 2."""
    if not isinstance(patch, dict):
        return patch
    fresh = dict(standing) if isinstance(standing, dict) else {}
    for name, value in patch.items():
        if value is None:
            fresh.pop(name, None)
        else:
            fresh[name] = merged(fresh.get(name), value)
    return fresh


def strategically_merged(schema: str, standing: Any, patch: Any) -> Any:
    """Lists with ``x-kubernetes-patch-merge-key`` are merged by it; others are replaced whole."""
    fresh = dict(standing)
    for name, value in patch.items():
        form = DEFINITIONS[schema]["properties"][name]
        key = form.get("x-kubernetes-patch-merge-key")
        if isinstance(value, list) and key is not None:
            given = {each[key]: each for each in value}
            fresh[name] = [merged(each, given.pop(each[key], {})) for each in fresh.get(name) or ()] + list(
                given.values()
            )
        elif isinstance(value, dict) and "$ref" in form:
            below = form["$ref"].rpartition("/")[2]
            fresh[name] = strategically_merged(below, fresh.get(name) or {}, value)
        else:
            fresh[name] = value
    return fresh
