"""A described node whose double the real pynvml has open, in the test's own process."""

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pynvml
import pytest

from nodeagent.emulator.gpus import Gpus
from nodeagent.emulator.node import EmulatedNode


@dataclass(frozen=True, slots=True)
class Opened:
    """``handles`` are those of all GPUs, in NVML's order."""

    node: EmulatedNode
    gpus: Gpus
    library: ctypes.CDLL
    handles: list[Any]

    @property
    def handle(self) -> Any:
        return self.handles[0]


OpenNode = Callable[..., Opened]


def point_pynvml_at(library: ctypes.CDLL | None) -> None:
    """What pynvml does once per process, done anew: each test has a library, and a state, of its own."""
    pynvml.nvmlLib = library
    pynvml._nvmlGetFunctionPointer_cache.clear()


@pytest.fixture
def describe_node(tmp_path: Path) -> Iterator[Callable[..., tuple[EmulatedNode, Gpus]]]:
    """Makes a node that nobody has opened: ``describe_node("2xH100", older="550")``."""
    made: list[EmulatedNode] = []

    def describe(description: str = "2xH100", older: str = "") -> tuple[EmulatedNode, Gpus]:
        node = EmulatedNode.create(tmp_path / f"node{len(made)}", description)
        gpus = Gpus(node.state, node.nvml)
        if older:
            gpus.driver.make_older(older)
        made.append(node)
        point_pynvml_at(ctypes.CDLL(str(node.nvml)))
        return node, gpus

    yield describe
    for node in made:
        node.release()
    point_pynvml_at(None)


@pytest.fixture
def open_node(describe_node: Callable[..., tuple[EmulatedNode, Gpus]]) -> Iterator[OpenNode]:
    """Makes a node and opens it."""
    libraries: list[ctypes.CDLL] = []

    def opened(description: str = "2xH100", older: str = "") -> Opened:
        node, gpus = describe_node(description, older)
        pynvml.nvmlInit()
        libraries.append(pynvml.nvmlLib)
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return Opened(node, gpus, pynvml.nvmlLib, handles)

    yield opened
    for library in libraries:
        while library.nvmlShutdown() == pynvml.NVML_SUCCESS:
            pass


@pytest.fixture
def h100(open_node: OpenNode) -> Opened:
    return open_node("2xH100")


@pytest.fixture
def b200(open_node: OpenNode) -> Opened:
    return open_node("2xB200")


@pytest.fixture
def a100(open_node: OpenNode) -> Opened:
    return open_node("2xA100")
