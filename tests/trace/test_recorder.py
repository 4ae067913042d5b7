"""What counts as run for an event, in real processes of a small program and of nodeagent itself."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.trace.__main__ import group, role_of
from tests.trace.interpreter import Checkout, NotSetUp, make_traced
from tests.trace.recorder import RECORD_FILE, SPAN_FILE, Span

ROOT = Path(__file__).parents[2]
LIMIT_S = 60

_PROGRAM = """
import sys
sys.path[:0] = [{recorder!r}, {top!r}]
import recorder
recorder.record({folder!r}, {sources!r})
from sources import event, tick

def span(value):
    with open({folder!r} + "/span", "r+b") as file:
        file.write(bytes([value]))

{body}
"""
_SOURCES = {
    "__init__": "",
    "tick": "from sources import shared\ndef tick(): shared.shared()\ndef turn(found): found()\n",
    "shared": "def shared(): pass\n",
    "event": "from sources import shared\ndef event(): shared.shared()\ndef unused(): pass\n",
    "late": "def prepare(): pass\nprepare()\ndef used(): pass\n",
    "other": "def other(): pass\n",
}

Play = Callable[[str], list[str]]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Run these lines in a traced program; the files that count, in order."""
    sources = tmp_path / "sources"
    sources.mkdir()
    for name, text in _SOURCES.items():
        (sources / f"{name}.py").write_text(text)
    (tmp_path / SPAN_FILE).write_bytes(b"\0")
    (tmp_path / RECORD_FILE).touch()

    def run(body: str) -> list[str]:
        program = _PROGRAM.format(
            recorder=str(ROOT / "tests" / "trace"),
            top=str(tmp_path),
            folder=str(tmp_path),
            sources=str(sources),
            body=body,
        )
        subprocess.run([sys.executable, "-c", program], check=True, timeout=LIMIT_S)
        records = [json.loads(line) for line in (tmp_path / RECORD_FILE).read_text().splitlines()]
        return [each["file"] for each in records if "file" in each]

    return run


def test_only_what_runs_in_the_span_of_the_event_counts(play: Play) -> None:
    assert play("event.event()\nspan(2)\nevent.event()\nspan(0)\ntick.tick()") == ["event.py", "shared.py"]


def test_what_runs_while_nothing_happens_does_not_count(play: Play) -> None:
    assert play("span(1)\ntick.tick()\nspan(2)\ntick.tick()") == []


def test_a_shared_function_counts_where_the_event_calls_it(play: Play) -> None:
    assert play("span(1)\ntick.tick()\nspan(2)\nevent.event()") == ["event.py", "shared.py"]


def test_what_leads_to_the_event_counts_though_it_runs_at_each_tick(play: Play) -> None:
    body = "span(1)\ntick.turn(tick.tick)\nspan(2)\ntick.turn(event.event)"
    assert play(body) == ["tick.py", "event.py", "shared.py"]


def test_what_has_run_since_before_the_event_does_not_count(play: Play) -> None:
    body = "def found():\n    span(2)\n    event.unused()\n\ntick.turn(found)"
    assert play(body) == ["event.py"]


def test_an_import_does_not_count(play: Play) -> None:
    assert play("span(2)\nfrom sources import late") == []
    assert play("span(2)\nfrom sources import late\nlate.used()") == ["late.py"]


def test_other_threads_count(play: Play) -> None:
    body = "import threading\nspan(2)\nthread = threading.Thread(target=event.unused)\nthread.start()"
    assert play(body) == ["event.py"]


def test_a_fork_is_a_process_of_its_own(play: Play) -> None:
    body = (
        "import os\nspan(2)\nevent.unused()\npid = os.fork()\nevent.unused()\nif pid:\n    os.waitpid(pid, 0)"
    )
    assert play(body) == ["event.py", "event.py"]


def test_each_process_of_the_traced_program_records(tmp_path: Path) -> None:
    (tmp_path / SPAN_FILE).write_bytes(bytes([Span.EVENT]))
    (tmp_path / RECORD_FILE).touch()
    program = make_traced(Checkout(ROOT), tmp_path)
    without_environment = [str(program.with_name("python")), "-I", "-m", "nodeagent.worker", "unknown"]
    subprocess.run([program, "version"], check=True, stdout=subprocess.DEVNULL, timeout=LIMIT_S)
    subprocess.run(without_environment, check=False, stderr=subprocess.DEVNULL, env={}, timeout=LIMIT_S)
    records = [json.loads(line) for line in (tmp_path / RECORD_FILE).read_text().splitlines()]
    assert [each.role for each in group(records)] == ["command nodeagent version", "worker unknown"]


def test_files_are_in_the_order_of_their_first_use_over_all_processes_of_a_role() -> None:
    worker = ["python", "-m", "nodeagent.worker", "kmsg"]
    records: list[dict[str, object]] = [
        {"pid": 1, "command": worker},
        {"pid": 2, "command": worker},
        {"pid": 1, "at_ns": 30, "file": "b.py"},
        {"pid": 2, "at_ns": 10, "file": "a.py"},
        {"pid": 2, "at_ns": 40, "file": "b.py"},
    ]
    (process,) = group(records)
    assert (process.role, list(process.files)) == ("worker kmsg", ["a.py", "b.py"])


@pytest.mark.parametrize(
    ("command", "role"),
    [
        ("/e/python /e/nodeagent run --config c", "daemon"),
        ("/e/python -I -m nodeagent.worker ascend", "worker ascend"),
        ("/e/python -m nodeagent.reset_unit a-1 --folder f", "reset unit"),
        ("/e/python /e/nodeagent job run -- sh", "job supervisor"),
        ("/e/python /e/nodeagent isolate npu3 --reason r", "command nodeagent isolate npu3"),
    ],
)
def test_a_process_is_known_by_its_command_line(command: str, role: str) -> None:
    assert role_of(command.split()) == role


def test_a_checkout_without_its_environment_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nodeagent").mkdir()
    with pytest.raises(NotSetUp, match=r"bin/python is missing: run \./dev setup in"):
        make_traced(Checkout(tmp_path), tmp_path)
