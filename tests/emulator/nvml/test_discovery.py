"""Opening GPUs that nothing keeps initialised: one after the other, and every other call waits meanwhile."""

import threading
import time
from collections.abc import Callable

import pynvml

from nodeagent.emulator.gpus import Gpus
from nodeagent.emulator.node import EmulatedNode

DescribeNode = Callable[..., tuple[EmulatedNode, Gpus]]
DISCOVERY_S = 0.2


def cold(describe_node: DescribeNode) -> EmulatedNode:
    node, _ = describe_node("2xH100")
    for name in node.names():
        node.set(name, "gpu_persistence_mode", 0)
        node.set(name, "gpu_discovery_ms", int(DISCOVERY_S * 1000))
    pynvml.nvmlInit()
    return node


def took_s(call: Callable[[], object]) -> float:
    begun_s = time.monotonic()
    call()
    return time.monotonic() - begun_s


def test_the_first_handle_takes_as_long_as_the_gpu_takes_to_start(describe_node: DescribeNode) -> None:
    node = cold(describe_node)
    assert took_s(lambda: pynvml.nvmlDeviceGetHandleByIndex(0)) >= DISCOVERY_S
    node.set("gpu1", "gpu_persistence_mode", 1)
    node.set("gpu0", "gpu_discovery_ms", 3_600_000)
    node.set("gpu1", "gpu_discovery_ms", 3_600_000)
    # Neither the second handle nor a GPU in persistence mode takes the hour.
    pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlDeviceGetHandleByIndex(1)


def test_one_gpu_starts_after_the_other(describe_node: DescribeNode) -> None:
    cold(describe_node)
    threads = [threading.Thread(target=pynvml.nvmlDeviceGetHandleByIndex, args=(n,)) for n in (0, 1)]

    def both() -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert took_s(both) >= 2 * DISCOVERY_S
