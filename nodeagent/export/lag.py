"""Reports how many events the receiver does not have yet: in the log when it falls behind and when it has
caught up, and to the service manager at all times; and that another exporter moves its position. It asks the
daemon, and changes nothing.
"""

import logging
import threading
from collections.abc import Callable
from typing import Final

from nodeagent.client import Client, ClientError, Position
from nodeagent.client.received import position
from nodeagent.export.delivery import RecordDelivery
from nodeagent.messages.pb import fault_service_pb2 as pb

BEHIND_AT: Final = 1000
"""As the alert NodeagentConsumerLags has it."""

CAUGHT_UP_AT: Final = 64
ASK_EVERY_S: Final = 10.0

Notify = Callable[[str], object]
"""Gives a line such as ``STATUS=...`` to the service manager (sd_notify(3))."""

_log = logging.getLogger(__name__)


class LagState:
    """Whether it is behind. Between the two limits it stays as it was, so that it does not report each
    event.
    """

    def __init__(self) -> None:
        self.is_behind = False

    def change(self, lag: int) -> str:
        """What there is to report of this lag, "" for nothing."""
        if not self.is_behind and lag >= BEHIND_AT:
            self.is_behind = True
            return f"the receiver falls behind: {lag} events wait for it"
        if self.is_behind and lag <= CAUGHT_UP_AT:
            self.is_behind = False
            return "the receiver has caught up"
        return ""


class LagReporter:
    """A thread next to the delivery, which may wait for the receiver for hours."""

    def __init__(
        self,
        client: Client,
        delivery: RecordDelivery,
        consumer: str,
        notify: Notify,
        acknowledging: Callable[[], Position | None],
    ) -> None:
        self._client = client
        self._delivery = delivery
        self._consumer = consumer
        self._notify = notify
        self._acknowledging = acknowledging
        self._is_shared = False
        self._state = LagState()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lag", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(ASK_EVERY_S):
            self.report()

    def report(self) -> None:
        try:
            listed = self._client.call(pb.ListConsumersRequest())
        except ClientError as error:  # the log has it from the stream
            self._notify(f"STATUS=The daemon does not answer: {error.status}")
            return
        own = next((each for each in listed.consumers if each.name == self._consumer), pb.Consumer())
        self._look_for_another(position(listed.store_id, own.seq))
        lag = own.lag
        if text := self._state.change(lag):
            _log.log(logging.WARNING if self._state.is_behind else logging.INFO, "%s", text)
        self._notify(f"STATUS={self._status(lag)}")

    def _look_for_another(self, latest: Position) -> None:
        own = self._acknowledging()
        if self._is_shared or own is None or (own.uuid, own.epoch) != (latest.uuid, latest.epoch):
            return
        self._is_shared = latest.seq > own.seq
        if self._is_shared:
            _log.error(
                "another exporter moves the position %s: after a restart this receiver misses what only the"
                " other one has taken; give one of the two a --consumer NAME of its own",
                self._consumer,
            )

    def _status(self, lag: int) -> str:
        done = f"{self._delivery.delivered} events delivered, {lag} waiting"
        rejected = f", {self._delivery.rejected} rejected" if self._delivery.rejected else ""
        trouble = f"; not taken: {self._delivery.trouble}" if self._delivery.trouble else ""
        shared = f"; another exporter moves the position {self._consumer}" if self._is_shared else ""
        return done + rejected + trouble + shared
