"""The emulated libdcmi answers as written in ``PRODUCT.txt``, in every state of a node.

The answers were compared, call by call, with those of the vendor's own library above a stub of its driver
(source: github hicann/driver). They are the same but for what ``README.md`` beside this file lists.
``pytest tests/emulator/answers --update`` rewrites them; the difference is then read like code.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, cast

import pytest

from nodeagent.emulator.node import EmulatedNode
from tests.emulator.answers.states import KILL_LIST, PRODUCTS, STATES, State, healthy

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
STAYS: Final = State(name="as it is", change=healthy)
END_LIMIT_S: Final = 5.0
"""For a process that was killed to be gone."""

Answers = Mapping[str, Any]
"""By the call and its address, such as ``health 1/0``."""


@pytest.mark.parametrize("product", PRODUCTS)
def test_the_library_answers_as_the_vendors_does(
    product: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    golden = HERE / f"{product}.txt"
    found = "\n".join(_lines(product, tmp_path)) + "\n"
    if request.config.getoption("--update"):
        golden.write_text(found)
    else:
        assert found == golden.read_text()


def _lines(product: str, folder: Path) -> Iterator[str]:
    """Of the healthy node every answer; of each other state what differs from it. A library that could not be
    initialised is asked nothing.
    """
    usual: Answers = {}
    for state in STATES:
        answers = _answers(product, state, folder)
        yield f"[{state.name}]"
        yield from _grouped({call: each for call, each in answers.items() if usual.get(call) != each})
        usual = usual or answers
        yield ""


def _grouped(answers: Answers) -> Iterator[str]:
    """A line for each call and answer, with all addresses that have it."""
    addresses: dict[tuple[str, str], list[str]] = defaultdict(list)
    for call, answer in answers.items():
        name, _, address = call.partition(" ")
        addresses[name, json.dumps(answer)].append(address)
    for (name, answer), where in addresses.items():
        yield f"{' '.join((name, *where)).strip()}: {answer}"


def _answers(product: str, state: State, folder: Path) -> Answers:
    """Of a reset what it answers, and which chips it resets."""
    if state.subscriptions:
        return _subscribed(product, state, folder)
    answers: dict[str, Any] = {}
    with _node(product, folder) as node:
        cards = sorted({node.chip(name).card_id for name in node.names()})
        dies = len(node.names()) // len(cards)
    resets = state.resets(len(cards))
    if not resets:
        with _node(product, folder) as node, _process(state, node) as process:
            answers["dcmi_init"] = process.initialised
            answers |= process.answer({"ask": dies, "cards": len(cards)})
    for reset in resets:
        with _node(product, folder) as node, _process(state, node) as process:
            answer = process.answer({"reset": reset})
            hit = [name for name in node.names() if node.chip(name).resets]
            answers[f"reset {reset[0]}/{reset[1]}/{reset[2]}"] = [answer, hit, *_killed(node)]
    return answers


def _subscribed(product: str, state: State, folder: Path) -> Answers:
    """What each subscription answers, and what is sent. A state that sends nothing is there before."""
    with _node(product, folder) as node:
        if not state.events:
            state.change(node)
        with _process(STAYS, node) as process:
            answers = process.answer({"subscribe": state.subscriptions})
            if state.events:
                state.change(node)
            received = process.answer({"heard": state.events})
    subscribed = {f"subscription {number}": answer for number, answer in enumerate(answers)}
    return subscribed | {f"event {number}": event for number, event in enumerate(received)}


def _killed(node: EmulatedNode) -> list[str]:
    """Whether the process on the library's list is still there, if there is a list; not when this returns."""
    listed = node.directory / KILL_LIST
    if not listed.exists():
        return []
    pid = int(listed.read_text().rpartition(":")[2])
    until_s = time.monotonic() + (END_LIMIT_S if "sleep" in listed.read_text() else 0)
    while not (ended := os.waitpid(pid, os.WNOHANG)[0]) and time.monotonic() < until_s:
        time.sleep(0.01)
    if not ended:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return ["killed" if ended else "still there"]


@contextmanager
def _node(product: str, folder: Path) -> Iterator[EmulatedNode]:
    """A healthy one."""
    place = folder / "node"
    with EmulatedNode.create(place, product) as node:
        for name in node.names():
            node.set(name, "reset_ms", 0)
        yield node
    shutil.rmtree(place)


class _Process:
    """A process that has loaded and initialised the library."""

    def __init__(self, library: Path) -> None:
        self._process = subprocess.Popen(
            (sys.executable, "-m", "tests.emulator.answers.asking", str(library)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )
        self.initialised = self._read()

    def answer(self, order: Mapping[str, Any]) -> Any:
        orders = cast(IO[str], self._process.stdin)
        orders.write(json.dumps(order) + "\n")
        orders.flush()
        return self._read()

    def end(self) -> None:
        with self._process:
            cast(IO[str], self._process.stdin).close()

    def _read(self) -> Any:
        line = cast(IO[str], self._process.stdout).readline()
        assert line, f"the process has ended with status {self._process.wait()}"
        return json.loads(line)


@contextmanager
def _process(state: State, node: EmulatedNode) -> Iterator[_Process]:
    """It has initialised the library before or after the node was changed, as the state says."""
    if not state.long_lived:
        state.change(node)
    process = _Process(node.dcmi)
    try:
        if state.long_lived:
            state.change(node)
        yield process
    finally:
        process.end()
