"""The client library as a wheel of its own, in an environment with nothing else, against a real daemon."""

import ast
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeagent import __version__
from tests.documents import ROOT, block
from tests.harness.node import Node, xid_line
from tests.waiting import Lines


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment with the wheel, and what that asks for in the versions of the lock."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [ROOT / "packaging/build_client.sh", sys.executable, folder], check=True, capture_output=True
    )
    (wheel,) = folder.glob("*.whl")
    pinned = [
        line.removesuffix("\\").strip()
        for line in (ROOT / "packaging/runtime.lock").read_text().splitlines()
        if "==" in line
    ]
    (folder / "versions").write_text("\n".join(pinned))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv/bin/python"
    install = (*pip_of(python), "install", "--quiet", "--no-compile", "--constraint", folder / "versions")
    subprocess.run([*install, wheel], check=True, timeout=240)
    return python


def pip_of(python: Path) -> tuple[str | Path, ...]:
    """Ours for that environment: to install one in it takes longer than the rest."""
    return (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")


def test_it_needs_grpc_and_protobuf_and_nothing_of_the_daemon(python: Path) -> None:
    listing = (*pip_of(python), "list", "--format", "json")
    listed = json.loads(subprocess.run(listing, check=True, capture_output=True).stdout)
    names = {each["name"].lower().replace("_", "-") for each in listed}

    assert names == {"grpcio", "nodeagent-client", "protobuf", "typing-extensions"}


def test_it_follows_a_daemon_over_its_restart_each_event_once(python: Path, tmp_path: Path) -> None:
    (tmp_path / "follow.py").write_text(block("python", ROOT / "docs/subscribing.md"))
    node = Node.within(tmp_path)
    with Following(python, tmp_path, node) as lines:
        with node.daemon():
            lines.until("all")
            node.write(xid_line(79))
            seen = [lines.until("XID_79").split()]
        with node.daemon():
            node.write(xid_line(48))
            while "XID_48" not in seen[-1]:
                seen.append(lines.readline().split())

    numbers = [int(number) for number, *_ in seen]
    assert seen[0][1:] == ["raised", "0000:3b:00.0", "XID_79", "ISOLATE", "RESCHEDULE"]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))


def test_its_modules_import_nothing_that_it_does_not_hold() -> None:
    """Also where they do so only within a function, which no test may call."""
    sources = held()
    roots = {name.partition(".")[0] for source in sources.values() for name in imported_by(source)}
    ours = {
        name for source in sources.values() for name in imported_by(source) if name.startswith("nodeagent.")
    }

    assert roots - sys.stdlib_module_names == {"google", "grpc", "nodeagent"}
    assert ours - sources.keys() == set()


def test_the_daemon_asks_for_the_client_of_its_own_version() -> None:
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]

    assert f"nodeagent-client=={__version__}" in asked


def held() -> dict[str, Path]:
    """The source of each module that the wheel holds, by its name."""
    setuptools = tomllib.loads((ROOT / "packaging/client/pyproject.toml").read_text())["tool"]["setuptools"]
    folders = [ROOT / package.replace(".", "/") for package in setuptools["packages"]]
    files = [file for folder in folders for file in folder.glob("*.py")]
    files += [ROOT / f"{module.replace('.', '/')}.py" for module in setuptools["py-modules"]]
    return {_name(file): file for file in files}


def _name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported_by(source: Path) -> Iterator[str]:
    """Modules; of ``from package import name`` the module ``package.name`` where there is one."""
    for node in ast.walk(ast.parse(source.read_text(), str(source))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in names if _is_module(name))


def _is_module(name: str) -> bool:
    place = ROOT / name.replace(".", "/")
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


class Following:
    """The client program of docs/subscribing.md; nothing of this checkout is on its path."""

    def __init__(self, python: Path, folder: Path, node: Node) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self._process = subprocess.Popen(
            [python, "-P", folder / "follow.py", folder / "position"],
            cwd=folder,
            env={**clean, "NODEAGENT_SOCKET": str(node.socket)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self._lines = Lines(self._process.stdout)

    def __enter__(self) -> Lines:
        return self._lines

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)
