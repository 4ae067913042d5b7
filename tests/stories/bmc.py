"""The real daemon over an emulated BMC, with a subscriber, for the stories of that source."""

import shutil
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from nodeagent.client import AsyncClient, Event, EventKind, Snapshot, Verdict
from nodeagent.emulator.node import EmulatedNode
from tests.harness.configuration import ROOT
from tests.harness.daemon import Daemon
from tests.harness.kernel_log import FakeKernelLog
from tests.harness.subscriber import Subscriber

SOURCE = "bmc"
TABLES = ("node.toml", "bmc.toml")


@dataclass(kw_only=True)
class Board:
    """Change ``required`` or ``patience``, and the next start does."""

    node: EmulatedNode
    daemon: Daemon
    subscriber: Subscriber
    required: bool = False
    patience: tuple[str, ...] = ('poll_interval = "20ms"',)

    async def start(self) -> None:
        """Start the daemon and follow it, from its first event on or on from where it ended."""
        for table in TABLES:
            shutil.copyfile(ROOT / "fault_codes" / table, self.daemon.tables / table)
        self.daemon.sections = (
            "[drivers.bmc]",
            f'library = "{self.node.ipmi}"',
            f"required = {str(self.required).lower()}",
            *self.patience,
        )
        await self.daemon.start() if not self.required else await self.daemon.spawn()
        await self.daemon.comes(self.daemon.socket.exists, "its socket")
        if self.subscriber.position is None:
            await self.subscriber.begin_with_the_first_event()
        await self.subscriber.follow()

    async def kill(self) -> None:
        await self.subscriber.leave()
        await self.daemon.kill()

    async def read_again(self, times: int = 2) -> None:
        """So many further readings have begun and ended."""
        wanted = self.node.calls("ioctl") + times * 4
        await self.daemon.comes(lambda: self.node.calls("ioctl") >= wanted, "another reading of the BMC")

    async def raised(self, code: str) -> Event:
        return await self.subscriber.event(EventKind.RAISED, code)

    async def cleared(self, code: str) -> Event:
        return await self.subscriber.event(EventKind.CLEARED, code)

    async def event(self, kind: EventKind) -> Event:
        """The newest such event of the source."""

        def of_the_source(update: object) -> bool:
            return isinstance(update, Event) and (update.kind, update.source) == (kind, SOURCE)

        found = await self.subscriber.until(of_the_source)
        assert isinstance(found, Event)
        return found

    def course(self, code: str) -> list[str]:
        """The raised and cleared of a code, in order."""
        kinds = (EventKind.RAISED, EventKind.CLEARED)
        return [
            event.kind.value for event in self.subscriber.events if event.code == code and event.kind in kinds
        ]

    async def snapshot(self) -> Snapshot:
        """The state as a new subscriber gets it."""
        async with AsyncClient(self.daemon.socket) as client:
            async for update in client.watch():
                if isinstance(update, Snapshot):
                    return update
        raise AssertionError("the stream ended")

    async def verdict(self) -> Verdict:
        """That of the node."""
        (node,) = (device for device in (await self.snapshot()).devices if device.name == "node")
        return node.verdict

    async def standing(self) -> set[str]:
        """The codes that are open."""
        return {condition.code for condition in (await self.snapshot()).conditions}


@asynccontextmanager
async def emulated_bmc(folder: Path) -> AsyncIterator[Board]:
    """Not started yet. At the end whatever hangs is let go, and the daemon killed."""
    with ExitStack() as left:
        node = left.enter_context(EmulatedNode.create(folder / "node", "1x910B"))
        log = FakeKernelLog(folder)
        left.callback(log.close)
        daemon = Daemon(folder=folder, kernel_log=log.path)
        daemon.configure()
        subscriber = Subscriber(daemon)
        try:
            yield Board(node=node, daemon=daemon, subscriber=subscriber)
        finally:
            node.release()
            await subscriber.leave()
            if daemon.process is not None:
                await daemon.kill()
