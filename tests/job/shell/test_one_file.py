"""``nodeagent-job.pyz``: the supervisor as one file, for any image with Python 3.10 or later."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.job.shell.supervised import ROOT, build, interpreter
from tests.waiting import WAIT_LIMIT_S

SOURCES = [ROOT / "nodeagent_job.py", *sorted((ROOT / "nodeagent/job").rglob("*.py"))]
OLDEST = (3, 10)

NEWER: dict[str, set[str]] = {
    "tomllib": {""},
    "enum": {"StrEnum", "verify", "member", "nonmember"},
    "typing": {"Self", "LiteralString", "Never", "assert_never", "assert_type", "reveal_type", "override"},
    "datetime": {"UTC"},
    "asyncio": {""},
    "itertools": {"batched"},
    "hashlib": {"file_digest"},
    "contextlib": {"chdir"},
}
"""What the standard library has since 3.11 or later ("": the whole module), by "What's New in Python"; and
asyncio, which takes too long to load."""


def imports_of(source: Path) -> set[tuple[str, str]]:
    """(module, name); the name is "" where the whole module is imported."""
    found = set[tuple[str, str]]()
    for node in ast.walk(ast.parse(source.read_text(), str(source), feature_version=OLDEST)):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or ".", alias.name) for alias in node.names}
    return found


def is_newer(module: str, name: str) -> bool:
    return name in NEWER.get(module, ()) or "" in NEWER.get(module, ())


def test_python_3_10_reads_every_source_and_has_what_it_imports() -> None:
    newer = {
        (str(source.relative_to(ROOT)), module, name)
        for source in SOURCES
        for module, name in imports_of(source)
        if is_newer(module, name)
    }
    assert newer == set()


def test_it_imports_the_standard_library_and_itself_only() -> None:
    foreign = {
        (str(source.relative_to(ROOT)), module)
        for source in SOURCES
        for module, _ in imports_of(source)
        if module.split(".")[0] not in sys.stdlib_module_names
        and module != "nodeagent"
        and module.split(".")[:2] != ["nodeagent", "job"]
    }
    # The interpreter's own hook (site in the library reference), and the module next to it there.
    assert foreign == {
        ("nodeagent/job/site_hook.py", "sitecustomize"),
        ("nodeagent/job/site_hook.py", "nodeagent_error_hook"),
    }


def test_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    first = build(tmp_path / "first.pyz").read_bytes()
    os.utime(SOURCES[0])

    assert build(tmp_path / "second.pyz").read_bytes() == first


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13"])
def test_it_runs_a_command_alone(tmp_path: Path, version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    pyz = build(tmp_path / "nodeagent-job.pyz")
    script = "echo run $MA_PROC_START_CNT; exit $((4 + MA_PROC_START_CNT))"
    options = ["--in-place-retries", "1", "--verdict-wait", "0s"]

    done = subprocess.run(
        [python, "-I", "-W", "error", pyz, "run", *options, "--", "sh", "-c", script],
        env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), "NODEAGENT_JOBS_SOCKET": "/nonexistent"},
        capture_output=True,
        timeout=WAIT_LIMIT_S,
        check=False,
    )

    assert (done.stdout, done.returncode) == (b"run 1\nrun 2\n", 87)


def test_both_entries_are_the_same_command() -> None:
    command = [sys.executable, "-m", "nodeagent.job", "run", "--grace", "never", "--", "true"]
    program = [str(Path(sys.executable).with_name("nodeagent")), "job", *command[3:]]

    said = [subprocess.run(each, capture_output=True, cwd=ROOT, check=False) for each in (command, program)]

    assert {each.returncode for each in said} == {78}
    assert len({each.stderr for each in said}) == 1
