"""Asks both libraries the same, in processes of their own; shows where they differ, and explains nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, cast

from nodeagent.emulator.node import EmulatedNode
from tests.compare_dcmi.states import KILL_LIST, State, healthy

ROOT = Path(__file__).parents[2]

STAYS: Final = State(name="as it is", change=healthy)
END_LIMIT_S: Final = 1.0
"""For a process that was killed to be gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """``call`` with its address, such as ``health 1/0``; answers as text, "-" where there is none."""

    product: str
    state: str
    call: str
    vendor: str
    emulator: str


def compare(product: str, state: State, vendor: Path, folder: Path) -> Iterator[Difference]:
    """Of one product in one state."""
    theirs = _answers(product, state, vendor, folder)
    ours = _answers(product, state, None, folder)
    for call in sorted(theirs.keys() | ours.keys()):
        theirs_text, ours_text = _text(theirs.get(call)), _text(ours.get(call))
        if theirs_text != ours_text:
            yield Difference(
                product=product, state=state.name, call=call, vendor=theirs_text, emulator=ours_text
            )


def _text(answer: Any) -> str:
    return "-" if answer is None else json.dumps(answer)


def _answers(product: str, state: State, vendor: Path | None, folder: Path) -> Mapping[str, Any]:
    """By call; of a reset what it answers and which chips it resets."""
    answers: dict[str, Any] = {}
    with _node(product, vendor, folder) as (node, library):
        cards = sorted({node.chip(name).card_id for name in node.names()})
        dies = len(node.names()) // len(cards)
        resets = state.resets(len(cards))
    if state.subscriptions:
        return _subscribed(product, state, vendor, folder)
    if not resets:
        with _node(product, vendor, folder) as (node, library), _process(state, node, library) as process:
            answers["dcmi_init"] = process.initialised
            answers |= process.answer({"ask": dies, "cards": len(cards)})
    for reset in resets:
        with _node(product, vendor, folder) as (node, library), _process(state, node, library) as process:
            answer = process.answer({"reset": reset})
            hit = [name for name in node.names() if node.chip(name).resets]
            answers[f"reset {reset[0]}/{reset[1]} channel {reset[2]}"] = [answer, hit, *_killed(node)]
    return answers


def _subscribed(product: str, state: State, vendor: Path | None, folder: Path) -> Mapping[str, Any]:
    """What each subscription answers, and what is sent. A state that sends nothing is there before."""
    with _node(product, vendor, folder) as (node, library):
        if not state.events:
            state.change(node)
        with _process(STAYS, node, library) as process:
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
    until_s = time.monotonic() + END_LIMIT_S
    while not (ended := os.waitpid(pid, os.WNOHANG)[0]) and time.monotonic() < until_s:
        time.sleep(0.01)
    if not ended:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return ["killed" if ended else "still there"]


@contextmanager
def _node(product: str, vendor: Path | None, folder: Path) -> Iterator[tuple[EmulatedNode, Path]]:
    """A healthy one, and the library that is to be asked."""
    place = folder / "node"
    with EmulatedNode.create(place, product) as node:
        for name in node.names():
            node.set(name, "reset_ms", 0)
        library = node.dcmi
        if vendor is not None:
            library = place / vendor.name
            shutil.copyfile(vendor, library)
        yield node, library
    shutil.rmtree(place)


class _Process:
    def __init__(self, library: Path) -> None:
        self._process = subprocess.Popen(
            (sys.executable, "-m", "tests.compare_dcmi.asking", str(library)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "COMPARE_DCMI_ETC": str(library.parent)},
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
        if not line:
            raise RuntimeError(f"the asking process has ended: {self._process.wait()}")
        return json.loads(line)


@contextmanager
def _process(state: State, node: EmulatedNode, library: Path) -> Iterator[_Process]:
    """That has initialised the library before or after the node was changed, as the state says."""
    if not state.long_lived:
        state.change(node)
    process = _Process(library)
    try:
        if state.long_lived:
            state.change(node)
        yield process
    finally:
        process.end()
