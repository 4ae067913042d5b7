"""The real daemon, in mode ``on`` unless said otherwise, over emulated NPUs that it may reset."""

import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from nodeagent.client import AsyncClient, Event, EventKind, Snapshot
from nodeagent.emulator.node import EmulatedNode
from tests.harness.configuration import ROOT
from tests.harness.daemon import Daemon
from tests.harness.kernel_log import FakeKernelLog
from tests.harness.subscriber import Subscriber
from tests.shipped import OF_GPUS
from tests.stories.clocks import SteppedClock

BROKEN = 0x80A18008
"""RestartNPU."""

CODE = "80A18008"
ACTIONS = (EventKind.ACTION_PROPOSED, EventKind.ACTION_STARTED, EventKind.ACTION_FINISHED)
POLLED = "dcmi_get_device_errorcode_v2"
INBAND = "dcmi_set_device_reset"


@dataclass(kw_only=True)
class Acting:
    """``mode`` and ``reset``, lines of that section, are taken up at the next start or reload."""

    node: EmulatedNode
    daemon: Daemon
    subscriber: Subscriber
    clock: SteppedClock
    mode: str = "on"
    reset: Sequence[str] = ()

    @property
    def run_dir(self) -> Path:
        return self.daemon.folder / "reset"

    def pass_time(self, seconds: int) -> None:
        """Of the rule clock. Nothing waits for it: the next poll wakes the daemon."""
        self.clock.pass_on(timedelta(seconds=seconds))

    async def start(self) -> None:
        has_gpus = "gpu0" in self.node.names()
        for table in OF_GPUS if has_gpus else ("ascend",):
            shutil.copyfile(ROOT / f"fault_codes/{table}.toml", self.daemon.tables / f"{table}.toml")
        self._configure()
        await self.daemon.start()
        await self.subscriber.follow()

    async def reload(self) -> None:
        self._configure()
        self.daemon.configure()
        said = await self.daemon.command("tables", "reload", "--socket", self.daemon.folder / "c.sock")
        assert said[0] == 0, said

    def _configure(self) -> None:
        has_gpus = "gpu0" in self.node.names()
        self.daemon.kmsg = (
            'poll_interval = "200ms"',
            "[drivers.nvidia]" if has_gpus else "[drivers.ascend]",
            f'library = "{self.node.nvml if has_gpus else self.node.dcmi}"',
            f'sysfs = "{self.node.sysfs}"',
            'poll_interval = "200ms"',
            "[reset]",
            f'mode = "{self.mode}"',
            f'run_dir = "{self.run_dir}"',
            f'do_not_touch = "{self.daemon.folder}/do-not-touch"',
            'announce = "5s"',
            'cool_down = "0s"',
            "trust_process_list = true",
            "allow_volatile_store = true",
            *self.reset,
        )

    async def kill(self) -> None:
        """Kill -9."""
        await self.subscriber.leave()
        await self.daemon.kill()

    def break_(self, device: str) -> None:
        self.node.raise_code(device, BROKEN)

    async def event(self, kind: EventKind, words: str, device: str = "") -> Event:
        """The first such event, with these words in its reason."""

        def wanted(received: object) -> bool:
            return (
                isinstance(received, Event)
                and received.kind is kind
                and words in received.why
                and device in ("", received.device)
            )

        event = await self.subscriber.until(wanted)
        assert isinstance(event, Event)
        return event

    @property
    def actions(self) -> list[tuple[str, str]]:
        """Kind and words of the events about actions."""
        return [(event.kind.value, event.why) for event in self.subscriber.events if event.kind in ACTIONS]

    async def stages(self) -> list[str]:
        """Of the resets there are."""
        return [str(reset.stage) for reset in (await self.snapshot()).resets]

    async def verifying(self, resets: int) -> None:
        """Wait until so many resets were done, and the last one is to be proved."""

        async def found() -> bool:
            return self.node.calls(INBAND) == resets and "verifying" in await self.stages()

        await self.daemon.comes(found, f"{resets} resets, the last to be proved")
        await self.read_again()

    async def announced(self, resets: int) -> None:
        """Wait until so many resets were proposed, and let the announcement of the last one pass."""
        await self.daemon.comes(
            partial(self._counts, EventKind.ACTION_PROPOSED, resets), f"{resets} proposals"
        )
        await self.read_again()
        self.pass_time(5)

    async def read_again(self) -> None:
        """Wait until every chip was polled anew."""
        polls = {name: self.node.calls(POLLED, name) for name in self.node.names()}
        for name, before in polls.items():
            await self.daemon.comes(partial(self._polled, name, before + 3), f"polls of {name}")

    async def is_at(self, stage: str) -> bool:
        """Whether a reset is at this stage."""
        return stage in await self.stages()

    async def order(self, *words: str) -> tuple[int, str]:
        """(exit status, stdout) of an operator's command."""
        control = self.daemon.folder / "c.sock"
        return await self.daemon.command(*words, "--reason", "a test", "--socket", control)

    async def claim(self, *words: str) -> None:
        """As a job's hook does."""
        control = self.daemon.folder / "c.sock"
        said = await self.daemon.command("claim", *words, "--job", "slurm:9", "--socket", control)
        assert said[0] == 0, said

    async def ended(self, resets: int) -> None:
        """Wait until so many resets have ended in all."""
        await self.daemon.comes(partial(self._counts, EventKind.ACTION_FINISHED, resets), f"{resets} ends")

    def _polled(self, device: str, times: int) -> bool:
        return self.node.calls(POLLED, device) >= times

    def _counts(self, kind: EventKind, times: int) -> bool:
        return len(self.subscriber.of(kind)) >= times

    async def snapshot(self) -> Snapshot:
        async with AsyncClient(self.daemon.socket) as client:
            async for received in client.watch():
                if isinstance(received, Snapshot):
                    return received
        raise AssertionError("the stream ended")

    async def verdicts(self) -> dict[str, str]:
        devices = (await self.snapshot()).devices
        return {device.name: device.verdict.value for device in devices if device.name != "node"}


@asynccontextmanager
async def acting(folder: Path, description: str) -> AsyncIterator[Acting]:
    """Not started yet. Its chips need half a second for a reset."""
    with ExitStack() as left:
        node = left.enter_context(EmulatedNode.create(folder / "npus", description))
        for name in node.names():
            if name.startswith("npu"):
                node.set(name, "reset_ms", 500)
        log = FakeKernelLog(folder)
        left.callback(log.close)
        clock = SteppedClock(folder, "BOOT")
        daemon = Daemon(folder=folder, kernel_log=log.path, env=clock.env)
        daemon.configure()
        (daemon.tables / "story.toml").write_text(log.table)
        subscriber = Subscriber(daemon)
        try:
            yield Acting(node=node, daemon=daemon, subscriber=subscriber, clock=clock)
        finally:
            node.release()
            await subscriber.leave()
            if daemon.process is not None:
                await daemon.kill()


TOOL = """
from pathlib import Path
from nodeagent.emulator.node import EmulatedNode
node = EmulatedNode(Path({directory!r}))
if sys.argv[1] != "--gpu-reset":
    sys.exit(0)
with Path({directory!r}, "called").open("a") as called:
    print(*sys.argv[1:], file=called)
if holders := node.gpus.obstacles("gpu1"):
    print("GPU 00000000:00:00.0 is in use by another client:", *holders)
    sys.exit(255)
node.gpus.chip("gpu1").gpu_rows_pending = 0
print("GPU 00000000:00:00.0 was successfully reset.")
"""


def called(node: EmulatedNode) -> list[str]:
    """What the tool was asked to reset."""
    file = node.directory / "called"
    return file.read_text().splitlines() if file.exists() else []
