"""The shipped manifest is what Kubernetes' schema allows, and gives its pods no more than they need."""

import json
from pathlib import Path

from nodeagent.config.load import load_config
from tests.schedulers.kubernetes import manifest, schemas


def test_every_object_is_as_the_published_schema_has_it() -> None:
    wrong = {
        f"{each['kind']} {each['metadata']['name']}": schemas.wrong_with(schemas.BY_KIND[each["kind"]], each)
        for each in manifest.objects()
    }
    assert {name for name, found in wrong.items() if found} == set(), wrong


def test_an_object_with_a_mistake_is_found() -> None:
    (pods,) = (each for each in manifest.objects() if each["kind"] == "DaemonSet")
    pods["spec"]["template"]["spec"]["containers"][0]["securityContexts"] = {}
    (wrong,) = schemas.wrong_with(schemas.BY_KIND["DaemonSet"], pods)
    assert "securityContexts" in wrong


def test_the_pods_are_nobody_special() -> None:
    pods = manifest.pod()
    (container,) = pods["containers"]
    assert not {"hostPID", "hostNetwork", "hostIPC"} & pods.keys()
    assert pods["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert [each["hostPath"]["path"] for each in pods["volumes"] if "hostPath" in each] == ["/run/nodeagent"]
    assert all(mount["readOnly"] for mount in container["volumeMounts"])


def test_the_image_is_the_one_that_the_variable_names() -> None:
    (container,) = manifest.pod()["containers"]
    assert container["image"] == manifest.IMAGE
    assert "$" not in json.dumps(manifest.objects())


def test_no_role_is_for_everything() -> None:
    assert not {"*", "secrets", "pods"} & {part for right in manifest.rights() for part in right}


def test_its_configuration_is_sound(tmp_path: Path) -> None:
    (text,) = (each["data"]["nodeagent.toml"] for each in manifest.objects() if each["kind"] == "ConfigMap")
    for name, shown in (("as shipped", text), ("all keys", text.replace("# ", ""))):
        file = tmp_path / f"{name}.toml"
        file.write_text(shown)
        assert load_config(file, {}).kubernetes.taint == "chip"
