"""A link between GPUs without switches that went down stays down until it is up, whatever happens."""

import json
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import uuid4

import pytest

from nodeagent.client import EventKind
from tests.harness.subscriber import Subscriber
from tests.stories.conftest import Follow, LaunchGpus
from tests.stories.gpus import GpuDaemon, events_of

CODE = "NV_NVLINK_INACTIVE"
QUICK = """
[[duration]]
id = "nv-nvlink-inactive"
codes = ["NV_NVLINK_INACTIVE"]
fault_timeout = "1s"
recover_timeout = "0s"
level = "RestartNPU"
"""

Meanwhile = Callable[[GpuDaemon, Subscriber], Awaitable[None]]


def join_without_switches(daemon: GpuDaemon) -> None:
    for name in daemon.node.names():
        daemon.node.set(name, "gpu_nvlink_remote_type", 0)
        daemon.node.set(name, "gpu_fabric_state", 0)


async def standing(daemon: GpuDaemon) -> dict[str, str]:
    """Code -> level of what is open on gpu0."""
    conditions = (await daemon.status())["conditions"]
    return {each["code"]: each["level"] for each in conditions if each["device"] == "gpu0"}


async def slow_polls(daemon: GpuDaemon, count: int) -> None:
    """That many more answers of gpu0 to what is asked seldom."""
    name = "nvmlDeviceGetRemappedRows"
    before = daemon.node.calls(name, "gpu0")
    await daemon.comes(lambda: daemon.node.calls(name, "gpu0") >= before + count, "polls of gpu0")


async def order(daemon: GpuDaemon, *words: str) -> tuple[int, str]:
    status, out = await daemon.command(*words, "--socket", f"{daemon.folder}/c.sock")
    assert status == 0, out
    return status, out


async def quiesced_and_resumed(daemon: GpuDaemon, subscriber: Subscriber) -> None:
    (worker,) = daemon.workers("nvidia")
    await order(daemon, "quiesce", "--reason", "cables")
    await daemon.comes(lambda: not daemon.workers("nvidia"), "the worker's end")
    await order(daemon, "resume", "--reason", "done")
    await daemon.comes(lambda: daemon.workers("nvidia") not in ([], [worker]), "another worker")


async def upgraded(daemon: GpuDaemon, subscriber: Subscriber) -> None:
    await daemon.restart()
    await subscriber.follow()


async def killed(daemon: GpuDaemon, subscriber: Subscriber) -> None:
    await daemon.kill()
    await daemon.start()
    await subscriber.follow()


async def its_worker_killed(daemon: GpuDaemon, subscriber: Subscriber) -> None:
    (worker,) = daemon.workers("nvidia")
    os.kill(worker, signal.SIGKILL)
    await daemon.comes(lambda: daemon.workers("nvidia") not in ([], [worker]), "another worker")


async def its_driver_loaded_anew(daemon: GpuDaemon, subscriber: Subscriber) -> None:
    (worker,) = daemon.workers("nvidia")
    daemon.gpus.driver.unload()
    daemon.gpus.driver.load()
    await daemon.comes(lambda: daemon.workers("nvidia") not in ([], [worker]), "another worker")


@pytest.mark.parametrize(
    "meanwhile", [quiesced_and_resumed, upgraded, killed, its_worker_killed, its_driver_loaded_anew]
)
async def test_a_link_that_went_down_stays_so(
    launch_gpus: LaunchGpus, follow: Follow, meanwhile: Meanwhile
) -> None:
    daemon = launch_gpus("4xH100")
    join_without_switches(daemon)
    daemon.tables.mkdir()
    (daemon.tables / "quick.toml").write_text(QUICK)
    subscriber = await follow(daemon)
    await slow_polls(daemon, 2)
    daemon.gpus.set_link("gpu0", 3, active=False)
    await subscriber.raised(CODE, "gpu0")
    await daemon.comes(lambda: is_isolated(daemon), "the level after a while")
    await meanwhile(daemon, subscriber)
    await slow_polls(daemon, 4)
    await daemon.comes(lambda: is_isolated(daemon), "the same fault")
    assert EventKind.CLEARED not in events_of(subscriber, "gpu0", CODE)
    daemon.gpus.set_link("gpu0", 3, active=True)
    await subscriber.cleared(CODE, "gpu0")


async def is_isolated(daemon: GpuDaemon) -> bool:
    return await standing(daemon) == {CODE: "RestartNPU"}


@pytest.mark.root
async def test_a_link_that_is_down_after_a_boot_was_up_before_it(
    launch_gpus: LaunchGpus, follow: Follow, tmp_path: Path
) -> None:
    boot_id = tmp_path / "boot_id"
    boot_id.write_text(f"{uuid4()}\n")
    daemon = launch_gpus("4xH100", boot_id=boot_id)
    join_without_switches(daemon)
    subscriber = await follow(daemon)
    await slow_polls(daemon, 2)
    daemon.gpus.set_link("gpu0", 3, active=False)
    await subscriber.raised(CODE, "gpu0")
    assert await daemon.stop() == 0
    boot_id.write_text(f"{uuid4()}\n")
    daemon.gpus.driver.load()
    await daemon.start()
    await subscriber.follow()
    await slow_polls(daemon, 4)
    assert CODE in await standing(daemon)
    assert EventKind.CLEARED not in events_of(subscriber, "gpu0", CODE)


async def test_a_bridge_that_was_taken_out_is_missed_until_a_person_says_that_it_is_right(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("4xH100")
    join_without_switches(daemon)
    subscriber = await follow(daemon)
    await slow_polls(daemon, 2)
    for gpu in daemon.node.names():
        daemon.gpus.set_link(gpu, 3, active=False)
        await subscriber.raised(CODE, gpu)
    for gpu in daemon.node.names():
        _, out = await order(daemon, "rebaseline", gpu, "--reason", "bridge taken out")
        assert json.loads(out) == {"device": gpu, "device_id": daemon.gpus.uuid(gpu), "durable": True}
    for gpu in daemon.node.names():
        await subscriber.cleared(CODE, gpu)
    await daemon.restart()
    await subscriber.follow()
    await slow_polls(daemon, 3)
    assert await standing(daemon) == {}
    said = [row for row in await audit(daemon) if row["what"] == "RebaselineDevice"]
    assert [row["result"] for row in said] == ["present state accepted as healthy: bridge taken out"] * 4


async def audit(daemon: GpuDaemon) -> list[dict[str, str]]:
    _, out = await daemon.command("audit", "--socket", f"{daemon.folder}/c.sock")
    return [json.loads(line) for line in out.splitlines()]


async def test_a_gpu_that_is_not_judged_by_a_code_says_so(launch_gpus: LaunchGpus, follow: Follow) -> None:
    daemon = launch_gpus("2xH100")
    daemon.node.answer(4, "gpu1", "nvmlDeviceGetRemappedRows*")
    await follow(daemon)

    async def shown() -> bool:
        devices = {each["name"]: each for each in (await daemon.status())["devices"]}
        return bool(devices["gpu1"]["attributes"].get("unjudged") == "XID_63,XID_64")

    await daemon.comes(shown, "what gpu1 is not judged by")
