"""What the built package holds, and where: what its own configuration, units and hooks name must be there."""

import io
import re
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from nodeagent import __version__
from tests.documents import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PLACE = re.compile(r"/usr/(?:bin|lib|share)/(?:doc/)?nodeagent[\w./-]*\w")
"""A path of the package in a text, without the stop of its sentence."""
NAMES_PLACES = re.compile(r"/etc/nodeagent/|/systemd/system/|/nodeagent/hooks/|/doc/nodeagent/")
RECORD = re.compile(r"/site-packages/(nodeagent|nodeagent_client)-[^/]*/RECORD$")
"""Of what a distribution has put into the environment: a line for each file, its path first."""

DOCUMENTS = Path("/usr/share/doc/nodeagent")
PAGE = re.compile(rf"{DOCUMENTS}/.*\.md")
HOOKS = "/usr/lib/nodeagent/hooks/"


@dataclass(frozen=True, slots=True)
class Held:
    """A file, folder or link of the package."""

    mode: int
    owner: tuple[int, int]
    content: bytes


@pytest.fixture(scope="module")
def held(package: Path) -> Mapping[str, Held]:
    """By its path."""
    found = {}
    done = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        for member in archive:
            path = "/" + member.name.removeprefix("./").rstrip("/")
            file = archive.extractfile(member) if member.isfile() else None
            content = file.read() if file is not None and _is_read(path) else b""
            found[path] = Held(member.mode & 0o7777, (member.uid, member.gid), content)
    return found


def _is_read(path: str) -> bool:
    if path.endswith(".gz"):
        return False
    return NAMES_PLACES.search(path) is not None or RECORD.search(path) is not None


def test_every_place_in_the_package_that_its_own_files_name_is_there(held: Mapping[str, Held]) -> None:
    named = {
        place
        for path, each in held.items()
        if NAMES_PLACES.search(path)
        for place in PLACE.findall(each.content.decode())
    }
    assert f"{HOOKS}nvidia-clients" in named
    assert sorted(named - held.keys()) == []


def test_hooks_can_be_run_and_only_root_can_change_them(held: Mapping[str, Held]) -> None:
    hooks = {path: (each.mode, each.owner) for path, each in held.items() if path.startswith(HOOKS)}
    assert hooks == {f"{HOOKS}nvidia-clients": (0o755, (0, 0))}


def test_no_double_of_a_vendors_library_is_in_the_daemons_package(held: Mapping[str, Held]) -> None:
    doubles = ("libbmc.so", "libdcmi.so", "liblingqu-dcmi.so", "libnvidia-ml.so.1")

    assert [path for path in held if "/nodeagent/emulator" in path or path.endswith(doubles)] == []


def test_the_documents_are_there_and_lead_to_each_other(held: Mapping[str, Held]) -> None:
    documents = {
        Path(path): each.content.decode()
        for path, each in held.items()
        if re.match(f"{DOCUMENTS}.*md$", path)
    }
    links = {
        (path.parent / link).resolve()
        for path, text in documents.items()
        for link in re.findall(r"\]\(([^)#\s]+\.md)", text)
    }
    assert DOCUMENTS / "docs" / "operating.md" in links
    assert sorted(links - documents.keys()) == []


def test_supervisor_of_jobs_is_one_file_that_can_be_run(held: Mapping[str, Held]) -> None:
    assert held["/usr/share/nodeagent/nodeagent-job.pyz"].mode == 0o755


def test_programs_of_the_environment_can_tell_beats(held: Mapping[str, Held]) -> None:
    assert [path for path in held if path.endswith("/site-packages/nodeagent_job.py")] != []


def test_each_module_is_of_one_distribution_the_daemon_or_its_client(held: Mapping[str, Held]) -> None:
    modules = {
        found[1]: {
            file
            for line in each.content.decode().splitlines()
            if (file := line.partition(",")[0]).startswith("nodeagent/")
        }
        for path, each in held.items()
        if (found := RECORD.search(path))
    }

    assert modules["nodeagent"] & modules["nodeagent_client"] == set()
    assert "nodeagent/client/generated/sync.py" in modules["nodeagent_client"]
    assert "nodeagent/daemon/app.py" in modules["nodeagent"]


def test_alerts_and_dashboards_are_there_and_nothing_that_makes_them(held: Mapping[str, Held]) -> None:
    folder = "/usr/share/nodeagent/monitoring/"
    shipped = {path.removeprefix(folder) for path in held if path.startswith(folder)}
    own = ROOT / "packaging" / "monitoring"
    files = {f"grafana/{path.name}" for path in (own / "grafana").iterdir()} | {"nodeagent.rules.yml"}
    assert shipped - {"grafana"} == files


def test_client_library_and_definitions_are_there_for_other_programs(held: Mapping[str, Held]) -> None:
    shared = "/usr/share/nodeagent/"
    definitions = {path.name for path in (ROOT / "proto/nodeagent/v1").glob("*.proto")}

    assert f"{shared}nodeagent_client-{__version__}-py3-none-any.whl" in held
    assert definitions == {
        path.removeprefix(f"{shared}proto/nodeagent/v1/") for path in held if path.endswith(".proto")
    }
