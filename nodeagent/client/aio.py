"""The client for asyncio. The client that blocks is made from this module
(``nodeagent.messages.generate_client``).
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from nodeagent.client import received
from nodeagent.client.calls import AsyncDaemonConnection, ClientError
from nodeagent.client.generated.values import Condition, Consumer, Device, Job
from nodeagent.client.position import Position
from nodeagent.client.received import Update
from nodeagent.client.session import WatchSession
from nodeagent.core.model import EventKind, Level
from nodeagent.messages import enums
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2


class AsyncClient(AsyncDaemonConnection):
    """Follows one daemon, and asks it."""

    async def watch(
        self,
        after: Position | None = None,
        *,
        consumer: str = "",
        snapshot: str = "if_needed",
        kinds: Iterable[EventKind] = (),
        devices: Iterable[str] = (),
        minimum_level: Level | None = None,
        codes: Iterable[str] = (),
    ) -> AsyncGenerator[Update, None]:
        """Follows the node without end, across restarts of the daemon, each event once and in order.

        Store ``update.position`` together with its effect and give it as ``after`` the next time. With
        a ``consumer`` and no ``after`` it continues after the last ``ack``. ``snapshot`` is always,
        if_needed or never. ``codes`` are fault codes or families of them such as ``XID_*``. Raises
        ``ClientError`` only where trying again cannot help.
        """
        session = WatchSession(
            after=after,
            consumer=consumer,
            snapshot=snapshot,
            kinds=kinds,
            devices=devices,
            minimum_level=minimum_level,
            codes=codes,
        )
        while True:
            try:
                async with aclosing(self.stream(session.request())) as responses:
                    async for response in responses:
                        for update in session.updates(response):
                            yield update
                ended = ClientError("UNAVAILABLE", "the daemon ended the stream")
            except ClientError as failure:
                ended = failure
            await asyncio.sleep(session.pause_s(ended))

    async def ack(self, consumer: str, position: Position) -> int:
        """Stores in the daemon how far a consumer has come; returns the number that is stored."""
        store_id = types_pb2.StoreId(uuid=position.uuid, epoch=position.epoch)
        answer = await self.call(pb.AckRequest(consumer=consumer, store_id=store_id, seq=position.seq))
        return int(answer.seq)

    async def rewind(self, consumer: str, position: Position) -> int:
        """Sets a consumer of your own back, or any if you are an operator; returns the number that is stored.

        For a subscriber that has lost what it stored: ``watch(consumer=...)`` then begins there. A number
        before the oldest event that is kept becomes the one just before it. Raises ``ClientError``.
        """
        store_id = types_pb2.StoreId(uuid=position.uuid, epoch=position.epoch)
        request = pb.RewindConsumerRequest(consumer=consumer, store_id=store_id, seq=position.seq)
        return int((await self.call(request)).seq)

    async def consumers(self) -> tuple[Consumer, ...]:
        """The named consumers, by name."""
        answer = await self.call(pb.ListConsumersRequest())
        return tuple(received.consumer(each) for each in answer.consumers)

    async def delete_consumer(self, name: str) -> None:
        """Deletes a consumer of your own, or any if you are an operator. Raises ``ClientError``."""
        await self.call(pb.DeleteConsumerRequest(consumer=name))

    async def devices(self, names: Iterable[str] = ()) -> tuple[Device, ...]:
        """The present devices, the node itself first."""
        answer = await self.call(pb.ListDevicesRequest(devices=names))
        return tuple(received.device(each) for each in answer.devices)

    async def readings(self, names: Iterable[str] = ()) -> dict[str, dict[str, float]]:
        """What was measured last of the observed devices, by their names: see docs/metrics.md."""
        answer = await self.call(pb.ListReadingsRequest(devices=names))
        return {each.device: dict(each.values) for each in answer.readings}

    async def conditions(
        self, devices: Iterable[str] = (), minimum_level: Level | None = None
    ) -> tuple[Condition, ...]:
        """The open conditions."""
        level = enums.level_number(minimum_level)
        answer = await self.call(pb.ListConditionsRequest(devices=devices, minimum_level=level))
        return tuple(received.condition(each) for each in answer.conditions)

    async def jobs(self) -> tuple[Job, ...]:
        """The jobs that use the node, also unsupervised ones; jobs that ended are kept for 30 days."""
        answer = await self.call(pb.ListJobsRequest())
        return tuple(received.job(each) for each in answer.jobs)
