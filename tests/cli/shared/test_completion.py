"""What a shell is offered for a word, by a real daemon on emulated chips; nothing where none answers."""

import os
import pty
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from nodeagent.cli.main import PARTS, main
from nodeagent.cli.shared import completion
from tests.cli.conftest import Nodeagent
from tests.cli.order.acting import CHIPS, RESET_NEEDED, Acting, acting
from tests.documents import ROOT
from tests.waiting import WAIT_LIMIT_S

SCRIPTS = ROOT / "packaging/completion"
BIN = Path(sys.executable).parent
HOSTILE = "$(touch pwned)"
ESCAPE = "x\x1b[31m"


@pytest.fixture(scope="module")
def chips(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acting]:
    with acting(tmp_path_factory.mktemp("completing")) as node:
        yield node


@pytest.fixture
def node(chips: Acting, monkeypatch: pytest.MonkeyPatch) -> Acting:
    """Whom the completion asks."""
    monkeypatch.setenv("NODEAGENT_CONFIG", str(chips.node.configuration))
    return chips


def offered(line: str) -> list[str]:
    """The words for the last of the line, which may be empty."""
    *before, begun = line.split(" ")
    items = BashComplete(main, {}, "nodeagent", completion.VARIABLE).get_completions(before[1:], begun)
    return [item.value for item in items]


def test_commands_are_offered_by_their_names() -> None:
    assert offered("nodeagent re") == [name for name in PARTS if name.startswith("re")]
    assert sorted(offered("nodeagent job st")) == ["step", "stop"]
    assert offered("nodeagent help job sh") == ["show"]
    assert offered("nodeagent help why ") == []


@pytest.mark.parametrize(
    "line",
    [
        "nodeagent why np",
        "nodeagent isolate np",
        "nodeagent events --device np",
        "nodeagent events --device=np",
        "nodeagent claim --job x npu0 np",
        "nodeagent emulator raise np",
    ],
)
def test_the_devices_of_the_daemon_are_offered(node: Acting, line: str) -> None:
    assert offered(line) == CHIPS


def test_a_socket_that_is_named_is_asked(chips: Acting) -> None:
    assert offered(f"nodeagent why --socket {chips.node.socket} npu7") == ["npu7"]


def test_a_device_is_offered_with_its_verdict(node: Acting) -> None:
    shell = BashComplete(main, {}, "nodeagent", completion.VARIABLE)
    assert [(item.value, item.help) for item in shell.get_completions(["why"], "npu3")] == [("npu3", "ALLOW")]


def test_codes_are_offered_from_the_tables_however_they_are_typed() -> None:
    assert "XID_79" in offered("nodeagent explain XID_7")
    assert offered("nodeagent explain xid_79") == ["XID_79"]
    assert offered("nodeagent events --code 80E01801") == ["80E01801"]


def test_holds_jobs_owners_and_consumers_of_the_daemon_are_offered(
    node: Acting, nodeagent: Nodeagent
) -> None:
    (held,) = nodeagent("isolate", "npu1", "--reason", "look", "-o", "json").json
    (other,) = nodeagent("isolate", "npu2", "--reason", "look", "-o", "json").json
    nodeagent("claim", "--job", "slurm:12.0", "npu4")

    assert offered("nodeagent release npu1 --id ") == [held["id"]]
    assert {held["id"], other["id"]} <= set(offered("nodeagent resume --id "))
    assert offered("nodeagent release npu1 --owner al") == ["alice"]
    assert offered("nodeagent job show slurm:1") == ["slurm:12.0"]
    assert offered("nodeagent consumers delete ") == []
    for chip in ("npu1", "npu2"):
        nodeagent("release", chip, "--reason", "done", "--force")


def test_a_proposed_action_is_offered_for_approval(node: Acting) -> None:
    node.chips.raise_code("npu6", RESET_NEEDED)
    node.stream.until("action_proposed")
    action, *devices = offered("nodeagent approve ")
    assert "/reset#" in action
    assert set(devices) == set(CHIPS)


def test_what_a_shell_would_act_on_is_not_offered(node: Acting, nodeagent: Nodeagent) -> None:
    for job in (HOSTILE, "a b", "~root", "-x", "good:1"):
        nodeagent("claim", f"--job={job}", "npu5")
    jobs = offered("nodeagent job show ")
    assert "good:1" in jobs
    assert [job for job in jobs if set(job) & set("$()~ ;|&<>*?[]{}'\"\\`!")] == []


def test_the_text_of_a_word_is_printable_and_short() -> None:
    (item,) = completion._fitting([("a", ESCAPE + "\n" + "long " * 100), (ESCAPE, "")], "")
    assert item.value == "a"
    assert item.help is not None
    assert item.help.startswith(r"x\x1b[31m long long")
    assert item.help.isprintable()
    assert len(item.help) == completion.MOST_SHOWN


# ---------------------------------------------------------------------- as the shells ask


def asked(line: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "nodeagent.cli"],
        env={
            **os.environ,
            completion.VARIABLE: "fish_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": line.rpartition(" ")[2],
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=WAIT_LIMIT_S,
        check=False,
    )


def nothing_was_said(done: "subprocess.CompletedProcess[str]") -> bool:
    return (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


def test_without_a_daemon_nothing_is_reported() -> None:
    assert nothing_was_said(asked("nodeagent why np"))


def test_with_a_broken_configuration_nothing_is_reported(configuration: Path) -> None:
    configuration.write_text("x")
    assert nothing_was_said(asked("nodeagent why np"))


def test_of_a_daemon_that_does_not_answer_nothing_is_reported(tmp_path: Path, configuration: Path) -> None:
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(tmp_path / "n.sock"))
        deaf.listen()
        assert nothing_was_said(asked("nodeagent why np"))


def test_a_wrong_word_before_is_no_error() -> None:
    assert nothing_was_said(asked("nodeagent nonesuch --what np"))


class Terminal:
    """A shell on a terminal, and what it has shown."""

    def __init__(self, *command: str, **environment: str) -> None:
        self._ours, theirs = pty.openpty()
        self.shell = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "TERM": "dumb", **environment},
        )
        os.close(theirs)
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def until(self, text: str) -> None:
        """Raises TimeoutError with what was shown."""
        os.set_blocking(self._ours, False)
        deadline = time.monotonic() + WAIT_LIMIT_S
        while text not in self.shown:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{text!r} is not in {self.shown!r}")
            if select.select([self._ours], [], [], 0.1)[0]:
                self.shown += os.read(self._ours, 65536).decode(errors="replace").replace("\a", "")

    def end(self) -> None:
        self.shell.kill()
        self.shell.wait(WAIT_LIMIT_S)
        os.close(self._ours)


@pytest.fixture
def bash() -> Iterator[Terminal]:
    terminal = Terminal("bash", "--norc", "--noprofile", "-i", INPUTRC="/dev/null", PS1="ready> ")
    terminal.until("ready> ")
    terminal.type(f". {SCRIPTS}/nodeagent.bash; bind 'set enable-bracketed-paste off'; echo load''ed\n")
    terminal.until("loaded")
    yield terminal
    terminal.end()


@pytest.fixture
def zsh(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal("zsh", "-f", "-i", HOME=str(tmp_path), PS1="ready> ")
    terminal.until("ready> ")
    terminal.type(f"fpath=({SCRIPTS} $fpath); autoload -Uz compinit; compinit -u -D; echo load''ed\n")
    terminal.until("loaded")
    yield terminal
    terminal.end()


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_in_a_terminal_a_device_is_completed(
    node: Acting, shell: str, request: pytest.FixtureRequest
) -> None:
    terminal: Terminal = request.getfixturevalue(shell)
    terminal.type("nodeagent why np\t\t\t")
    terminal.until("npu0")
    terminal.until("npu7")


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_in_a_terminal_a_name_with_a_colon_is_completed(
    node: Acting, nodeagent: Nodeagent, shell: str, request: pytest.FixtureRequest
) -> None:
    nodeagent("claim", "--job", "slurm:77.0", "npu4")
    terminal: Terminal = request.getfixturevalue(shell)
    terminal.type("nodeagent job show slurm:7\t")
    terminal.until("slurm:77.0")


def test_fish_offers_devices_with_their_verdicts(node: Acting) -> None:
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source {SCRIPTS}/nodeagent.fish; complete -C 'nodeagent why npu3'"],
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=WAIT_LIMIT_S,
        check=True,
    )
    assert re.fullmatch(r"npu3\t[A-Z_]+\n", done.stdout)
