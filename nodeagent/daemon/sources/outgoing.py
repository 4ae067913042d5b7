"""What a supervisor hands to the pump, and what follows from that for its workers. It decides nothing."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from nodeagent.core.model import Input
from nodeagent.daemon.delivery import Delivery
from nodeagent.daemon.workers import loop_clock
from nodeagent.daemon.workers.worker_set import WorkerSet


class Outgoing:
    """What goes from one source to the pump. ``deliver`` and ``hand_over`` may wait."""

    def __init__(
        self, source: str, deliver: Callable[[Delivery], Awaitable[None]], workers: WorkerSet
    ) -> None:
        self._source = source
        self._to_pump = deliver
        self._workers = workers
        self._held: list[Input] = []

    def hold(self, inputs: Iterable[Input]) -> None:
        """These go with what is handed over next, in their order: a delivery costs more than an input."""
        self._held += inputs

    async def deliver(self, inputs: Iterable[Input] = ()) -> None:
        await self.hand_over(Delivery(source=self._source, inputs=tuple(inputs)))

    async def hand_over(self, delivery: Delivery) -> None:
        """And what was held. The time it takes is not the driver's."""
        inputs, self._held = (*self._held, *delivery.inputs), []
        if not inputs and delivery.cursor is None:
            return
        begun_s = loop_clock.now_s()
        await self._to_pump(replace(delivery, inputs=inputs))
        if delivery.cursor is not None:
            self._workers.accounted_for(delivery.cursor)
        if self._workers.worker is not None:
            self._workers.worker.lateness.excuse(loop_clock.now_s() - begun_s)
