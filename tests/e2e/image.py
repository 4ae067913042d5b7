"""The container image: unpacked as a node does it, and started by a runtime as a kubelet has it started."""

import contextlib
import json
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Configure = Callable[[Any], None]
"""Changes the runtime's configuration of a container."""


def inspected(image: Path, *options: str) -> Any:
    """What ``skopeo`` says of it."""
    return json.loads(_run("skopeo", "inspect", *options, reference(image)))


def reference(image: Path) -> str:
    """As tools take it: the tag is the version."""
    version = image.name.removeprefix("nodeagent-").removesuffix(".oci")
    return f"oci:{image}:{version}"


def unpacked(image: Path, architecture: str, folder: Path) -> Path:
    """The bundle that a runtime of this architecture is given, in this new folder."""
    pulled = folder.with_name(f"{folder.name}.pulled")
    _run(
        *("skopeo", "--override-arch", architecture, "copy", "--quiet"),
        *(reference(image), f"oci:{pulled}:one"),
    )
    _run("umoci", "unpack", "--image", f"{pulled}:one", str(folder))
    return folder


@contextlib.contextmanager
def container(bundle: Path, configure: Configure, folder: Path) -> Iterator[tuple[str, ...]]:
    """The command that runs it in the foreground. At the end it is gone.

    It shares the network of this machine, and ends no earlier than its first process.
    """
    configuration = json.loads((bundle / "config.json").read_text())
    configuration["root"]["path"] = str(bundle / "rootfs")
    configuration["process"]["terminal"] = False
    namespaces = configuration["linux"]["namespaces"]
    configuration["linux"]["namespaces"] = [each for each in namespaces if each["type"] != "network"]
    configure(configuration)
    name = f"nodeagent-test-{uuid.uuid4()}"
    own = folder / name
    own.mkdir()
    (own / "config.json").write_text(json.dumps(configuration))
    runc = ("runc", "--root", str(folder / "runc"))
    try:
        yield (*runc, "run", "--bundle", str(own), name)
    finally:
        subprocess.run([*runc, "delete", "--force", name], capture_output=True, check=False)


def output(bundle: Path, folder: Path, *arguments: str) -> str:
    """Of nodeagent with these arguments, as it is started where nobody says how."""

    def configure(configuration: Any) -> None:
        configuration["process"]["args"] += arguments

    with container(bundle, configure, folder) as command:
        return _run(*command)


@contextlib.contextmanager
def running(command: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def as_kubelet(pod: Any, mounted: Mapping[str, Path], variables: Mapping[str, str]) -> Configure:
    """The one container of a pod. ``mounted``: by the name of the volume, or by the path where a kubelet adds
    one. ``variables`` are those that a kubelet adds, and those that the manifest takes from the pod.
    """
    (wanted,) = pod["containers"]
    user, security = pod["securityContext"], wanted["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert {each["name"] for each in wanted["env"]} <= variables.keys()
    paths = {each["name"]: each["mountPath"] for each in wanted["volumeMounts"]}

    def configure(configuration: Any) -> None:
        process = configuration["process"]
        process["args"] += wanted["args"]
        process["env"] += [f"{name}={value}" for name, value in variables.items()]
        process["user"] = {
            "uid": user["runAsUser"],
            "gid": user["runAsGroup"],
            "additionalGids": user["supplementalGroups"],
        }
        process["capabilities"] = {}
        process["noNewPrivileges"] = not security["allowPrivilegeEscalation"]
        configuration["root"]["readonly"] = security["readOnlyRootFilesystem"]
        configuration["mounts"] += [
            bind(source, paths.get(where, where), "ro") for where, source in mounted.items()
        ]

    return configure


def bind(source: Path, destination: str, *options: str) -> dict[str, object]:
    return {
        "type": "bind",
        "source": str(source),
        "destination": destination,
        "options": ["rbind", *options],
    }


def _run(*command: str) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout
