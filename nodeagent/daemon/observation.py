"""What of a source is observed now, and the inputs that follow when that changes. Pure, one per source.

It outlives the workers: a device that did not answer the last worker is still told as unresponsive
until a poll of it succeeds. Each method takes what was said or noticed and returns the inputs for it.

At the first success after a start of the daemon a ``recover`` is sent for a fault this process never
raised: an earlier one may have, and only a success can close it. What vanished while no daemon ran is
found by the first list, which is compared with the parts that were known before.
"""

from collections.abc import Collection, Mapping, Sequence

from nodeagent.core.model import (
    NODE,
    Assertion,
    Holder,
    Input,
    SourceBack,
    SourceLost,
)
from nodeagent.core.names import part_of
from nodeagent.daemon.expected import ExpectedChips
from nodeagent.daemon.parts import Parts
from nodeagent.daemon.translate import (
    DEVICE_LOST,
    DRIVER_UNRESPONSIVE,
    LOG_GAP,
    WORKER_CRASHED,
    Clock,
    active_set,
    device_seen,
    fault,
    holders,
    node_fault,
    signals,
    skipped,
)
from nodeagent.worker import protocol
from nodeagent.worker.protocol import SOURCE


class Observation:
    """``required``: without this source the node's state is unknown. ``known`` are its parts of before.
    ``expected_chips`` are as in ``ExpectedChips``.
    """

    def __init__(
        self,
        source: str,
        required: bool,
        clock: Clock,
        known: Sequence[protocol.Device] = (),
        expected_chips: int | None = None,
    ) -> None:
        self.chips = ExpectedChips(source, expected_chips)
        self._source = source
        self._parts = Parts(source, known)
        self._required = required
        self._clock = clock
        self._devices: dict[str, protocol.Device] = {}
        self._missing: dict[str, str] = {}
        self._unobserved: dict[str, str] = {}
        self._unresponsive: set[str] = set()
        self._vouched: set[tuple[str, str]] = set()
        self._crashed = False
        self._awaited: set[str] = set()
        self._follows = False
        self._caught_up: protocol.CaughtUp | None = None
        self._is_open = False
        self._observing = False
        self._observed_before = False
        self._lost = False
        self._absent = False
        self._on_purpose = False
        self._lost_by: str | None = None
        self._holders: dict[str, tuple[Holder, ...]] = {}
        self._resting: dict[str, str] = {}
        self._listed: protocol.Hello | protocol.Devices | None = None

    @property
    def resting(self) -> Collection[str]:
        """The devices that are let alone: whatever is said of them meanwhile is not heard."""
        return self._resting.keys()

    @property
    def observing(self) -> bool:
        """A first complete read was made, and the source was not lost since."""
        return self._observing

    def observes(self, device: str) -> bool:
        """Whether what was last read of it still holds; of the source for ``*``. From any thread."""
        return not (self._lost or device in self._unobserved or device in self._unresponsive)

    @property
    def absent(self) -> bool:
        """There is nothing of it here, as the last look for it said, and nobody expects it."""
        return self._absent

    @property
    def is_missed(self) -> bool:
        """It was told as lost, and is not back."""
        return self._lost

    @property
    def is_known(self) -> bool:
        """Whether there is, or ever was, anything of it here to observe."""
        return self._is_open or self._observed_before or self._lost or self._parts.any

    def rest(self, devices: Collection[str], reason: str) -> list[Input]:
        """These are let alone from now on: not observed, which is no fault."""
        self._resting |= dict.fromkeys(devices, reason)
        self._awaited.difference_update(devices)
        return [*(lost for device in devices for lost in self._unobserve(device, reason)), *self._settle()]

    def wake(self, devices: Collection[str]) -> list[Input]:
        """These are observed again once they answer; what was listed meanwhile holds of them too."""
        for device in devices:
            self._resting.pop(device, None)
        return [] if self._listed is None else self.population(self._listed)

    def expect(self, chips: int | None) -> list[Input]:
        """From now on so many are right."""
        self.chips.number = chips
        return [*(self._count() if chips else self.chips.never_mind())]

    def hello(self, hello: protocol.Hello, skip: Collection[str]) -> list[Input]:
        """A worker is ready; it will not touch the devices in ``skip``."""
        inputs = self.population(hello)
        self._awaited = self._devices.keys() - set(skip) - self._resting.keys()
        self._follows = hello.follows
        self._caught_up = None
        self._is_open = True
        self._absent = False
        self._unobserved.clear()
        for device in skip:
            inputs += self._unobserve(device, "skipped: a call for it hangs in an abandoned worker")
        for device, reason in self._resting.items():
            inputs += self._unobserve(device, reason)
        return [*inputs, *self._settle()]

    def population(self, said: protocol.Hello | protocol.Devices) -> list[Input]:
        """These devices there are, and these are missing."""
        self._listed = said
        resting = {name: self._devices[name] for name in self._resting if name in self._devices}
        devices = {device.device: device for device in said.devices} | resting
        known_as = devices.keys() | {device.attributes.get("pci", "") for device in resting.values()}
        missing = {lost.device: lost.reason for lost in said.missing if lost.device not in known_as}
        inputs: list[Input] = [*self._parts.vanished(devices.values(), missing=missing, spared=self._resting)]
        for name in self._devices.keys() - devices.keys():
            inputs += self._forget(name)
        for name, device in devices.items():
            before = self._devices.get(name)
            if before != device:
                self._holders.pop(name, None)
                inputs.append(device_seen(self._source, device))
            if self._observing and (before is None or before.identity != device.identity):
                # Another part: the core takes it for unread until it hears of an answer.
                self._unobserved.setdefault(name, "not read yet")
            inputs += self._recovered(DEVICE_LOST, name, stood=name in self._missing)
        for name in self._missing.keys() - missing.keys() - devices.keys():
            inputs.append(self._fault(DEVICE_LOST, name, Assertion.RECOVER))
        inputs += self._miss(missing)
        self._devices, self._missing = devices, missing
        known = {NODE, SOURCE, *devices}
        self._vouched = {(code, name) for code, name in self._vouched if name in known}
        inputs += self._count()
        return [*inputs, *(self._settle() if isinstance(said, protocol.Devices) else ())]

    def batch(self, batch: protocol.Batch) -> list[Input]:
        inputs: list[Input] = []
        if batch.lost:
            reason = f"{batch.lost} records were overwritten before they could be read"
            inputs.append(self._fault(LOG_GAP, NODE, Assertion.ONCE, reason, count=batch.lost))
        inputs += [skipped(self._source, record) for record in batch.skipped]
        heard = signals(self._source, batch, self._clock)
        return [*inputs, *(signal for signal in heard if part_of(signal.device)[0] not in self._resting)]

    def reply(self, reply: protocol.Reply) -> list[Input]:
        """A device answered, be it with a failure."""
        device = reply.device
        self._awaited.discard(device)
        inputs: list[Input] = []
        if device in self._resting:
            return self._settle()
        if reply.error:
            if device != SOURCE:
                inputs += self._unobserve(device, f"the driver answers: {reply.error}")
            return [*inputs, *self._settle()]
        inputs += self._recovered(DRIVER_UNRESPONSIVE, device, stood=device in self._unresponsive)
        self._unresponsive.discard(device)
        held, has_come = self._new_holders(reply)
        inputs += held if has_come else []
        # What is active goes first: once it is back, time-outs run on, also of what has gone meanwhile.
        if (active := active_set(self._source, reply, self._clock)) is not None:
            inputs.append(active)
        if self._unobserved.pop(device, None) is not None and self._observing:
            inputs.append(SourceBack(source=self._source, device=device))
        inputs += [] if has_come else held
        return [*inputs, *self._settle()]

    def caught_up(self, said: protocol.CaughtUp) -> list[Input]:
        self._caught_up = said
        self._is_open = True
        if self._observing:
            # Of a worker that goes on in place of another: it heals what that one missed.
            active = active_set(self._source, said, self._clock)
            return [] if active is None else [active]
        return self._settle()

    def late(self, devices: Collection[str], reason: str) -> list[Input]:
        """These devices owe an answer for too long."""
        inputs: list[Input] = []
        for device in devices:
            self._awaited.discard(device)
            if device not in self._unresponsive:
                self._unresponsive.add(device)
                inputs.append(self._fault(DRIVER_UNRESPONSIVE, device, Assertion.OCCUR, reason))
            if device != SOURCE:
                inputs += self._unobserve(device, reason)
        return [*inputs, *self._settle()]

    def lost(self, reason: str, on_purpose: bool = False) -> list[Input]:
        """Nothing of the source is observed any more. After it was ``on_purpose``, another reason is news."""
        self._is_open = self._observing = False
        self._caught_up = None
        if self._lost and not self._on_purpose:
            return []
        self._lost, self._on_purpose = True, on_purpose
        return [SourceLost(source=self._source, reason=reason, required=self._required)]

    def unavailable(self, said: protocol.Unavailable) -> list[Input]:
        """It cannot be opened. Where nothing is to be expected, nothing is lost."""
        is_empty = said.absent and not said.missing and not self._required and not self._observed_before
        self._absent = is_empty and not self.chips.number
        if is_empty:
            gone = self._parts.vanished((), spared=self._resting, reason=said.reason)
            return [*gone, *self.chips.counted(())]
        missing = {lost.device: lost.reason for lost in said.missing}
        inputs = [*self._miss(missing), *self.lost(said.reason)]
        self._missing |= missing
        if said.code is not None and said.code != self._lost_by:
            self._lost_by = said.code
            inputs.append(node_fault(self._source, said.code, said.reason))
        return inputs

    def crashed(self, reason: str) -> list[Input]:
        self._crashed = True
        return [self._fault(WORKER_CRASHED, NODE, Assertion.OCCUR, reason), *self.lost(f"worker {reason}")]

    # ------------------------------------------------------------------ in pieces

    def _count(self) -> Sequence[Input]:
        """Before each device was asked once the list may be short: chips that start are listed late."""
        return self.chips.counted(self._devices.values(), self._missing) if self._observing else ()

    def _new_holders(self, reply: protocol.Reply) -> tuple[list[Input], bool]:
        """Who holds it now, where they are others than before, and whether one of them may have come.

        A reset may wait for nothing but to see its fault once more: a process that has come must be known by
        then. Where processes have only left, it must be known first whether the fault is still there.
        """
        held, before = holders(reply), self._holders.get(reply.device)
        if not held.known:
            return ([], False) if self._holders.pop(reply.device, None) is None else ([held], True)
        if held.holders == before:
            return [], False
        self._holders[reply.device] = held.holders
        return [held], not set(held.holders) <= set(before or ())

    def _settle(self) -> list[Input]:
        """The first complete read: every device has answered or failed to, and the history is read.

        What a worker that has to go still owes does not complete it.
        """
        if not self._is_open or self._observing or self._awaited:
            return []
        if self._follows and self._caught_up is None:
            return []
        if self._devices and self._unobserved.keys() >= self._devices.keys():
            return self._all_unobserved()
        self._observing = self._observed_before = True
        self._lost, self._lost_by, self._on_purpose = False, None, False
        inputs: list[Input] = []
        if self._caught_up is not None:
            active = active_set(self._source, self._caught_up, self._clock)
            inputs += [] if active is None else [active]
        inputs += self._count()
        inputs.append(SourceBack(source=self._source, required=self._required))
        for device, reason in self._unobserved.items():
            inputs.append(SourceLost(source=self._source, reason=reason, device=device))
        inputs += self._recovered(WORKER_CRASHED, NODE, stood=self._crashed)
        self._crashed = False
        return inputs

    def _all_unobserved(self) -> list[Input]:
        if self._lost:
            return []
        self._lost = True
        why = ", ".join(f"{name}: {reason}" for name, reason in self._unobserved.items())
        reason = f"no device can be read; {why}"
        return [SourceLost(source=self._source, reason=reason[:1024], required=self._required)]

    def _unobserve(self, device: str, reason: str) -> list[Input]:
        if self._unobserved.get(device) == reason:
            return []
        self._unobserved[device] = reason
        return [SourceLost(source=self._source, reason=reason, device=device)] if self._observing else []

    def _miss(self, missing: Mapping[str, str]) -> list[Input]:
        return [
            self._fault(DEVICE_LOST, name, Assertion.OCCUR, reason)
            for name, reason in missing.items()
            if name not in self._missing
        ]

    def _forget(self, device: str) -> list[Input]:
        self._awaited.discard(device)
        self._unobserved.pop(device, None)
        self._holders.pop(device, None)
        stood = device in self._unresponsive
        self._unresponsive.discard(device)
        return [self._fault(DRIVER_UNRESPONSIVE, device, Assertion.RECOVER)] if stood else []

    def _recovered(self, code: str, device: str, *, stood: bool) -> list[Input]:
        first = (code, device) not in self._vouched
        self._vouched.add((code, device))
        return [self._fault(code, device, Assertion.RECOVER)] if stood or first else []

    def _fault(self, code: str, device: str, assertion: Assertion, reason: str = "", count: int = 1) -> Input:
        return fault(code, device, assertion, source=self._source, reason=reason, count=count)
