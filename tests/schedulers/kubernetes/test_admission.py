"""What the shipped admission policies let the bridge's account write, and why they refuse the rest.

That they refuse nothing of what the bridge really writes is what its stories show.
"""

from typing import Any, Final

import pytest

from nodeagent.schedulers.kubernetes import device_info, node_info
from nodeagent.schedulers.kubernetes.cluster import CONDITION, EFFECT, MARK, TAINT, WRITER, config_map
from tests.schedulers.kubernetes import admission, manifest, schemas
from tests.schedulers.kubernetes.admission import Review, of_a_pod, refused
from tests.schedulers.kubernetes.api_requests import Object
from tests.schedulers.kubernetes.patches import merged

DISK: Final = {"key": "maintenance", "value": "disk", "effect": "NoSchedule"}
TAINTED: Final = {"key": TAINT, "value": "80E18005", "effect": EFFECT}
READY: Final = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": None}
HEALTHY: Final = {"type": CONDITION, "status": "True", "reason": "AcceleratorsAllowWork"}
NODE: Final[Object] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "node-1",
        "labels": {"nodeagent": "installed"},
        "resourceVersion": "7",
        "managedFields": [{"manager": "kubelet", "operation": "Update"}],
    },
    "spec": {"podCIDR": "10.0.1.0/24", "taints": [DISK, TAINTED]},
    "status": {"capacity": {"cpu": "64"}, "conditions": [READY, HEALTHY]},
}
BARE: Final[Object] = {"metadata": {"name": "node-1", "resourceVersion": "7"}, "spec": {}, "status": {}}
"""As it is registered: without a taint and a condition."""

META: Final = "the bridge changes no label, annotation, finalizer or owner of a Node"
TAINTS: Final = f"the bridge changes no taint but {TAINT}:{EFFECT}"
SPEC: Final = "the bridge changes nothing of a Node's spec but taints"
CONDITIONS: Final = f"the bridge changes no condition but {CONDITION}"
STATUS: Final = "the bridge changes nothing of a Node's status but conditions"
NO_NODE: Final = "the token names no node; only that of a pod, or one bound to a node, may write"
OTHER_NODE: Final = "the token is of another node; a pod of the bridge changes the Node that it runs on"
OTHER_NAME: Final = (
    "a pod of the bridge writes no ConfigMap but kube-system/mindx-dl-deviceinfo-NODE and"
    " mindx-dl/mindx-dl-nodeinfo-NODE of the node that it runs on"
)
OF_ANOTHER: Final = f"this ConfigMap is another's: it lacks the annotation {MARK}: {WRITER}"
UNMARKED: Final = f"the bridge writes no ConfigMap without the annotation {MARK}: {WRITER}"


def change(before: Object, patch: Object, *, token_of: str = "node-1", **more: Any) -> Review:
    """Of a Node; the API server notes it in the metadata."""
    noted = {"resourceVersion": "8", "managedFields": [{"manager": "bridge", "operation": "Update"}]}
    after = merged(merged(before, patch), {"metadata": noted})
    asked = {"operation": "UPDATE", "resource": "nodes", "extra": of_a_pod(token_of), **more}
    return Review(before=before, after=after, **asked)


@pytest.mark.parametrize("resource", ["nodes", "nodes/status"])
@pytest.mark.parametrize(
    ("before", "patch"),
    [
        (NODE, {"spec": {"taints": [DISK]}}),
        (NODE, {"spec": {"taints": [DISK, {**TAINTED, "value": ""}]}}),
        (BARE, {"spec": {"taints": [TAINTED]}}),
        (merged(BARE, {"spec": {"taints": [TAINTED]}}), {"spec": {"taints": None}}),
        (NODE, {"status": {"conditions": [READY, {**HEALTHY, "status": "False"}]}}),
        (NODE, {"status": {"conditions": [HEALTHY, READY]}}),
        (BARE, {"status": {"conditions": [HEALTHY]}}),
    ],
)
def test_its_own_taint_and_condition_may_change(before: Object, patch: Object, resource: str) -> None:
    assert refused(change(before, patch, resource=resource)) == ""


FOREIGN_PARTS: Final[list[tuple[Object, str]]] = [
    ({"metadata": {"labels": {"nodeagent": "removed"}}}, META),
    ({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}, META),
    ({"metadata": {"labels": None}}, META),
    ({"metadata": {"annotations": {"some": "note"}}}, META),
    ({"metadata": {"finalizers": ["some.example/guard"]}}, META),
    ({"metadata": {"ownerReferences": [{"kind": "Node", "name": "node-2"}]}}, META),
    ({"spec": {"taints": [DISK, TAINTED, {"key": "other", "effect": "NoSchedule"}]}}, TAINTS),
    ({"spec": {"taints": [DISK, {**TAINTED, "effect": "NoExecute"}]}}, TAINTS),
    ({"spec": {"taints": [{**DISK, "effect": "NoExecute"}, TAINTED]}}, TAINTS),
    ({"spec": {"taints": [TAINTED]}}, TAINTS),
    ({"spec": {"taints": None}}, TAINTS),
    ({"spec": {"unschedulable": True}}, SPEC),
    ({"spec": {"podCIDR": "10.0.2.0/24"}}, SPEC),
    ({"spec": {"podCIDR": None}}, SPEC),
    ({"status": {"conditions": [{**READY, "status": "False"}, HEALTHY]}}, CONDITIONS),
    ({"status": {"conditions": [READY, HEALTHY, {"type": "DiskPressure", "status": "True"}]}}, CONDITIONS),
    ({"status": {"conditions": [HEALTHY]}}, CONDITIONS),
    ({"status": {"capacity": {"cpu": "1"}}}, STATUS),
    ({"status": {"capacity": None}}, STATUS),
    ({"status": {"addresses": [{"type": "Hostname", "address": "elsewhere"}]}}, STATUS),
]


@pytest.mark.parametrize("resource", ["nodes", "nodes/status"])
@pytest.mark.parametrize(("patch", "why"), FOREIGN_PARTS)
def test_what_belongs_to_others_on_its_node_may_not_change(patch: Object, why: str, resource: str) -> None:
    assert refused(change(NODE, patch, resource=resource)) == why


TAINT_REMOVED: Final = {"spec": {"taints": [DISK]}}


def test_the_node_of_another_pod_may_not_change() -> None:
    assert refused(change(NODE, TAINT_REMOVED, token_of="node-2")) == OTHER_NODE


@pytest.mark.parametrize("extra", [{}, {"authentication.kubernetes.io/credential-id": ["JTI=1"]}])
def test_a_token_that_names_no_node_may_change_none(extra: dict[str, list[str]]) -> None:
    assert refused(change(NODE, TAINT_REMOVED, extra=extra)) == NO_NODE


def test_other_accounts_are_not_concerned() -> None:
    label = {"metadata": {"labels": {"some": "label"}}}
    assert refused(change(NODE, label, username="system:node:node-1", extra={})) == ""
    theirs = write("UPDATE", "kube-system", "coredns", before_marked=False, marked=False)
    assert refused(Review(**{**theirs, "username": "kubernetes-admin"})) == ""


DEVICES: Final = (device_info.NAMESPACE, f"{device_info.NAME_PREFIX}node-1")
PARTS: Final = (node_info.NAMESPACE, f"{node_info.NAME_PREFIX}node-1")


def write(
    operation: str, namespace: str, name: str, *, before_marked: bool = True, marked: bool = True
) -> dict[str, Any]:
    """Of a ConfigMap, that bears the bridge's mark or lacks it, before and after."""

    def made(with_mark: bool) -> Object:
        found: Object = dict(config_map(name, namespace, {"some": "data"}, None))
        return found if with_mark else merged(found, {"metadata": {"annotations": None}})

    return {
        "operation": operation,
        "resource": "configmaps",
        "namespace": namespace,
        "before": None if operation == "CREATE" else made(before_marked),
        "after": None if operation == "DELETE" else made(marked),
        "extra": of_a_pod("node-1"),
    }


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
@pytest.mark.parametrize("place", [DEVICES, PARTS])
def test_its_own_config_maps_may_change(place: tuple[str, str], operation: str) -> None:
    assert refused(Review(**write(operation, *place))) == ""


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
@pytest.mark.parametrize(
    "place",
    [
        ("kube-system", "coredns"),
        ("kube-system", "mindx-dl-deviceinfo-node-2"),
        ("kube-system", "mindx-dl-deviceinfo-node-11"),
        ("kube-system", PARTS[1]),
        ("mindx-dl", DEVICES[1]),
        ("mindx-dl", "mindx-dl-nodeinfo-node-2"),
        ("default", DEVICES[1]),
    ],
)
def test_no_other_config_map_may_change(place: tuple[str, str], operation: str) -> None:
    assert refused(Review(**write(operation, *place))) == OTHER_NAME


@pytest.mark.parametrize("operation", ["UPDATE", "DELETE"])
@pytest.mark.parametrize("place", [DEVICES, PARTS])
def test_a_config_map_of_another_writer_may_not_change(place: tuple[str, str], operation: str) -> None:
    assert refused(Review(**write(operation, *place, before_marked=False))) == OF_ANOTHER


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_no_config_map_may_come_without_the_mark(operation: str) -> None:
    assert refused(Review(**write(operation, *DEVICES, marked=False))) == UNMARKED


def test_a_token_that_names_no_node_may_write_no_config_map() -> None:
    assert refused(Review(**{**write("CREATE", *DEVICES), "extra": {}})) == NO_NODE


def test_what_cannot_be_evaluated_is_refused() -> None:
    assert refused(change({"metadata": {"name": "node-1"}}, {})).startswith("cannot be evaluated: ")


def test_each_reason_of_the_policies_is_one_that_is_tried_here() -> None:
    tried = {META, TAINTS, SPEC, CONDITIONS, STATUS, NO_NODE, OTHER_NODE, OTHER_NAME, OF_ANOTHER, UNMARKED}
    policies = admission.of_kind("ValidatingAdmissionPolicy")
    assert {each["message"] for policy in policies for each in policy["spec"]["validations"]} == tried


def test_each_policy_is_as_the_published_schema_has_it_and_denies() -> None:
    for each in admission.objects():
        assert schemas.wrong_with(schemas.BY_KIND[each["kind"]], each) == []
    policies = {each["metadata"]["name"]: each for each in admission.of_kind("ValidatingAdmissionPolicy")}
    bindings = [each["spec"] for each in admission.of_kind("ValidatingAdmissionPolicyBinding")]
    assert sorted(each["policyName"] for each in bindings) == sorted(policies)
    assert all(each["validationActions"] == ["Deny"] for each in bindings)
    assert {each["spec"]["failurePolicy"] for each in policies.values()} == {"Fail"}


def test_the_account_is_that_of_the_manifests_pods() -> None:
    (pods,) = (each for each in manifest.objects() if each["kind"] == "DaemonSet")
    name = pods["spec"]["template"]["spec"]["serviceAccountName"]
    assert f"system:serviceaccount:{pods['metadata']['namespace']}:{name}" == admission.ACCOUNT
