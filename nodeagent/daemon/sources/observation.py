"""What of a source is observed now, and the inputs that follow when that changes. Pure, one for each source.

It outlives the workers: a device that did not answer the last worker stays unresponsive until a poll of it
succeeds. Each method takes what a worker reported, or what the supervisor noticed, and returns the inputs for
it. The state of the source as a whole is the table in ``source_state``.

A device that vanished while no daemon ran is found by the first list, which is compared with the devices of
earlier lives.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from nodeagent import wire
from nodeagent.core.model import (
    NODE,
    Assertion,
    Holder,
    Input,
    Loss,
    ProcessesListed,
    Signal,
    SourceAbsent,
    SourceBack,
    SourceLost,
)
from nodeagent.core.state.names import part_of
from nodeagent.daemon.sources.inventory import ExpectedChips, Inventory, marked
from nodeagent.daemon.sources.source_state import TRANSITIONS, SourceState, SourceTrigger
from nodeagent.daemon.sources.translate import (
    DEVICE_LOST,
    DRIVER_UNRESPONSIVE,
    LOG_GAP,
    WORKER_CRASHED,
    StampClock,
    active_set,
    device_seen,
    fault,
    holders,
    node_fault,
    signals,
)
from nodeagent.wire import SOURCE, CaughtUp, Reply


class Observation:
    """``required``: without this source the node's state is unknown. ``known`` are its parts of before.
    ``expected_chips`` are as in ``ExpectedChips``, ``exclude`` as in ``excluded``.
    """

    def __init__(
        self,
        source: str,
        required: bool,
        clock: StampClock,
        known: Sequence[wire.Device] = (),
        expected_chips: int | None = None,
        exclude: Sequence[str] = (),
    ) -> None:
        self.chips = ExpectedChips(source, expected_chips)
        self.state = SourceState.OPENING
        self._first_read: FirstRead | None = None
        self._source = source
        self._inventory = Inventory(source, known)
        self._required = required
        self._exclude = exclude
        self._clock = clock
        self._faults = OwnFaults(source)
        self._listed: wire.Hello | wire.Devices | None = None
        self._devices: dict[str, wire.Device] = {}
        self._unobserved: dict[str, str] = {}
        self._resting: dict[str, str] = {}
        self._holders = HolderChanges()
        self._lost_by: str | None = None
        self._is_unlisted = False

    @property
    def resting(self) -> Collection[str]:
        """The devices that are let alone: whatever is said of them meanwhile is not heard."""
        return self._resting.keys()

    @property
    def listed(self) -> Collection[wire.Device]:
        """Its devices, as they were listed last."""
        return self._devices.values()

    @property
    def observing(self) -> bool:
        """A first complete read was made, and the source was not lost since."""
        return self.state is SourceState.OBSERVING

    @property
    def absent(self) -> bool:
        """There is nothing of it here, at the last look, and none is expected."""
        return self.state is SourceState.ABSENT and not self.chips.number

    @property
    def is_lost(self) -> bool:
        """It was reported as lost, or let go, and is not back."""
        return self.state in (SourceState.UNOPENED, SourceState.LOST, SourceState.LET_GO)

    def observes(self, device: str) -> bool:
        """Whether what was last read of it still holds; of the source for ``*``. From any thread."""
        is_silent = device in self._unobserved or self._faults.is_open(DRIVER_UNRESPONSIVE, device)
        return not (self.is_lost or is_silent)

    def rest(self, devices: Collection[str], reason: str) -> list[Input]:
        """These are let alone from now on: not observed, which is no fault."""
        self._resting |= dict.fromkeys(devices, reason)
        self._no_longer_owed(*devices)
        return [*(lost for device in devices for lost in self._unobserve(device, reason)), *self._settle()]

    def wake(self, devices: Collection[str]) -> list[Input]:
        """These are observed again once they answer; what was listed meanwhile holds of them too."""
        for device in devices:
            self._resting.pop(device, None)
        return [] if self._listed is None else self.population(self._listed)

    def expect(self, chips: int | None) -> list[Input]:
        """From now on so many are right."""
        was_absent, self.chips.number = self.absent, chips
        inputs: list[Input] = [*(self._count() if chips else self.chips.never_mind())]
        if self.absent and not was_absent:
            inputs.append(SourceAbsent(source=self._source, reason="no chip is expected any more"))
        return inputs

    def hello(self, hello: wire.Hello, skip: Collection[str]) -> list[Input]:
        """A worker is ready; it will not touch the devices in ``skip``."""
        inputs = self.population(hello)
        self._take(SourceTrigger.OPENED)
        self._is_unlisted = False
        owed = self._devices.keys() - set(skip) - self._resting.keys()
        self._first_read = FirstRead(owed, follows=hello.follows)
        self._unobserved.clear()
        for device in skip:
            inputs += self._unobserve(device, "not read: an earlier call for it hangs in the driver")
        for device, reason in self._resting.items():
            inputs += self._unobserve(device, reason)
        return [*inputs, *self._settle()]

    def population(self, said: wire.Hello | wire.Devices) -> list[Input]:
        """These devices there are, and these are missing."""
        self._listed = said
        resting = {name: self._devices[name] for name in self._resting if name in self._devices}
        devices = {device.device: device for device in marked(said.devices, self._exclude)} | resting
        known_as = devices.keys() | {device.attributes.get("pci", "") for device in resting.values()}
        missing = {lost.device: lost.reason for lost in said.missing if lost.device not in known_as}
        inputs: list[Input] = [
            *self._inventory.vanished(devices.values(), missing=missing, spared=self._resting)
        ]
        for name in self._devices.keys() - devices.keys():
            inputs += self._forget(name)
        for name, device in devices.items():
            before = self._devices.get(name)
            if before != device:
                self._holders.forget(name)
                inputs.append(device_seen(self._source, device))
            if self.observing and (before is None or before.identity != device.identity):
                # Another part: the core takes it for unread until it hears of an answer.
                self._unobserved.setdefault(name, "not read yet")
            inputs += self._faults.recovered(DEVICE_LOST, name)
        for name in sorted(set(self._faults.on(DEVICE_LOST)) - missing.keys()):
            inputs += self._faults.recovered(DEVICE_LOST, name)
        inputs += self._missed(missing)
        self._devices = devices
        self._faults.forget_all_but({NODE, SOURCE, *devices})
        inputs += self._count()
        return [*inputs, *(self._settle() if isinstance(said, wire.Devices) else ())]

    def batch(self, batch: wire.Batch) -> list[Input]:
        inputs: list[Input] = []
        if batch.lost:
            reason = f"{batch.lost} records were overwritten before they could be read"
            gap = fault(LOG_GAP, NODE, Assertion.ONCE, source=self._source, reason=reason, count=batch.lost)
            inputs.append(gap)
        reported = signals(self._source, batch, self._clock)
        return [*inputs, *(signal for signal in reported if part_of(signal.device)[0] not in self._resting)]

    def reply(self, reply: wire.Reply) -> list[Input]:
        """A device answered, be it with a failure."""
        device = reply.device
        self._no_longer_owed(device)
        inputs: list[Input] = []
        if device in self._resting:
            return self._settle()
        if reply.error:
            if device != SOURCE:
                inputs += self._unobserve(device, f"the driver answers: {reply.error}")
            elif not self._devices and self.observing:
                # Where no device answers, the list is all by which it can be seen to work.
                self._is_unlisted = True
                inputs += self._lose(f"its devices cannot be listed: {reply.error}", Loss.NOT_READ)
            return [*inputs, *self._settle()]
        if device == SOURCE and self._is_unlisted:
            self._is_unlisted = False
            self._first_read = FirstRead(self._devices.keys() - self._resting.keys())
        inputs += self._faults.recovered(DRIVER_UNRESPONSIVE, device)
        holders, has_come = self._holders.changed(reply)
        inputs += holders if has_come else []
        # What is active goes first: once it is back, time-outs run on, also of what has gone meanwhile.
        if (active := active_set(self._source, reply, self._clock)) is not None:
            inputs.append(active)
        if self._unobserved.pop(device, None) is not None and self.observing:
            inputs.append(SourceBack(source=self._source, device=device))
        inputs += [] if has_come else holders
        return [*inputs, *self._settle()]

    def caught_up(self, said: wire.CaughtUp) -> list[Input]:
        if self.observing:
            # Of a worker that takes the place of another: it heals what that one missed.
            return self._active(said)
        if self._first_read is None:
            # The worker lost its source and has found it again.
            self._first_read = FirstRead(follows=True)
        self._first_read.caught_up = said
        return self._settle()

    def late(self, devices: Collection[str], reason: str) -> list[Input]:
        """These devices owe an answer for too long."""
        inputs: list[Input] = []
        for device in devices:
            self._no_longer_owed(device)
            inputs += self._faults.began(DRIVER_UNRESPONSIVE, device, reason)
            if device != SOURCE:
                inputs += self._unobserve(device, reason)
        return [*inputs, *self._settle()]

    def lost(self, reason: str, how: Loss = Loss.NOT_READ) -> list[Input]:
        """Nothing of the source is observed any more."""
        self._first_read = None
        return self._lose(reason, how)

    def let_go(self, reason: str) -> list[Input]:
        """It is not observed, on purpose. Where there never was anything to observe, nothing is lost."""
        is_known = self.observing or self.is_lost or self._first_read is not None
        if not is_known and not self._inventory.any:
            return []
        self._first_read = None
        self._take(SourceTrigger.RELEASED)
        return self._source_lost(reason, Loss.RELEASED) if self.state is SourceState.LET_GO else []

    def unavailable(self, said: wire.Unavailable) -> list[Input]:
        """It cannot be opened. Where nothing is to be expected, nothing is lost."""
        self._first_read = None
        missing = {lost.device: lost.reason for lost in said.missing}
        is_expected = bool(missing) or self._required or not said.absent
        inputs: list[Input] = [*self._missed(missing)]
        inputs += self._lose(said.reason, self._how_ended()) if is_expected else self._not_found(said.reason)
        if self.state is SourceState.ABSENT:
            inputs += self._inventory.vanished((), spared=self._resting, reason=said.reason)
            inputs += self.chips.counted(())
        elif said.code is not None and said.code != self._lost_by:
            self._lost_by = said.code
            inputs.append(node_fault(self._source, said.code, said.reason))
        return inputs

    def crashed(self, reason: str) -> list[Input]:
        how = self._how_ended()
        return [*self._faults.occurred(WORKER_CRASHED, NODE, reason), *self.lost(f"worker {reason}", how)]

    # ------------------------------------------------------------------ in pieces

    def _take(self, trigger: SourceTrigger) -> SourceState:
        """Go on in the table; the state before."""
        before, self.state = self.state, TRANSITIONS[self.state, trigger]
        return before

    def _lose(self, reason: str, how: Loss) -> list[Input]:
        """Emitted once, on the way into *lost* or *unopened*."""
        before = self._take(SourceTrigger.FAILED)
        return self._source_lost(reason, how) if self.state is not before else []

    def _not_found(self, reason: str) -> list[Input]:
        """There is nothing of it, and none is expected: a loss only of what was observed or let go."""
        before = self._take(SourceTrigger.NOT_FOUND)
        if self.state is before:
            return []
        if self.state is SourceState.ABSENT:
            return [SourceAbsent(source=self._source, reason=reason)] if self.absent else []
        return self._source_lost(reason, Loss.NOT_READ)

    def _how_ended(self) -> Loss:
        """What the end of its worker means. One that has read it all did run: the next may do so again."""
        return Loss.NOT_READ if self.observing else Loss.NOT_RUNNING

    def _source_lost(self, reason: str, how: Loss) -> list[Input]:
        return [SourceLost(source=self._source, reason=reason, required=self._required, how=how)]

    def _count(self) -> Sequence[Input]:
        """Before each device was asked once the list may be short: chips that start are listed late."""
        if not self.observing:
            return ()
        return self.chips.counted(self._devices.values(), self._faults.on(DEVICE_LOST))

    def _active(self, said: wire.CaughtUp) -> list[Input]:
        active = active_set(self._source, said, self._clock)
        return [] if active is None else [active]

    def _no_longer_owed(self, *devices: str) -> None:
        if self._first_read is not None:
            self._first_read.devices.difference_update(devices)

    def _settle(self) -> list[Input]:
        """The first complete read: every device has answered or failed to, and the history is read.

        What a worker that has to go still owes does not complete it.
        """
        read = self._first_read
        if self.observing or read is None or not read.is_complete:
            return []
        if self._devices and self._unobserved.keys() >= self._devices.keys():
            why = ", ".join(f"{name}: {reason}" for name, reason in self._unobserved.items())
            return self._lose(f"no device can be read; {why}"[:1024], Loss.NOT_READ)
        self._take(SourceTrigger.READ)
        self._first_read = self._lost_by = None
        inputs = [] if read.caught_up is None else self._active(read.caught_up)
        inputs += self._count()
        inputs.append(SourceBack(source=self._source, required=self._required))
        for device, reason in self._unobserved.items():
            inputs.append(SourceLost(source=self._source, reason=reason, device=device))
        return [*inputs, *self._faults.recovered(WORKER_CRASHED, NODE)]

    def _unobserve(self, device: str, reason: str) -> list[Input]:
        if self._unobserved.get(device) == reason:
            return []
        self._unobserved[device] = reason
        return [SourceLost(source=self._source, reason=reason, device=device)] if self.observing else []

    def _missed(self, missing: Mapping[str, str]) -> list[Input]:
        begun = (self._faults.began(DEVICE_LOST, name, reason) for name, reason in missing.items())
        return [raised for each in begun for raised in each]

    def _forget(self, device: str) -> Iterable[Input]:
        self._no_longer_owed(device)
        self._unobserved.pop(device, None)
        self._holders.forget(device)
        was_open = self._faults.is_open(DRIVER_UNRESPONSIVE, device)
        return self._faults.recovered(DRIVER_UNRESPONSIVE, device) if was_open else ()


class OwnFaults:
    """The agent's own faults of one source and its devices, each raised once. A device has the worker's name.

    The first ``recovered`` of each is emitted though this process never raised the fault: an earlier process
    may have raised it, and nothing else can close it.
    """

    def __init__(self, source: str) -> None:
        self._source = source
        self._open: set[tuple[str, str]] = set()
        self._recovery_sent: set[tuple[str, str]] = set()

    def is_open(self, code: str, device: str) -> bool:
        return (code, device) in self._open

    def on(self, code: str) -> Collection[str]:
        """The devices on which it is open."""
        return [device for each, device in self._open if each == code]

    def began(self, code: str, device: str, reason: str) -> list[Signal]:
        """The fault began: it is raised, unless it is open already."""
        return [] if self.is_open(code, device) else self.occurred(code, device, reason)

    def occurred(self, code: str, device: str, reason: str) -> list[Signal]:
        """The fault occurred: it is raised each time."""
        self._open.add((code, device))
        return [self._signal(code, device, Assertion.OCCUR, reason)]

    def recovered(self, code: str, device: str) -> list[Signal]:
        is_news = self.is_open(code, device) or (code, device) not in self._recovery_sent
        self._open.discard((code, device))
        self._recovery_sent.add((code, device))
        return [self._signal(code, device, Assertion.RECOVER)] if is_news else []

    def forget_all_but(self, devices: Collection[str]) -> None:
        """Another part may have the name of one that is listed no longer."""
        self._recovery_sent = {(code, device) for code, device in self._recovery_sent if device in devices}

    def _signal(self, code: str, device: str, assertion: Assertion, reason: str = "") -> Signal:
        return fault(code, device, assertion, source=self._source, reason=reason)


class FirstRead:
    """``devices`` have to answer once, or fail to. One that ``follows`` also says when it has caught up."""

    def __init__(self, devices: Collection[str] = (), follows: bool = False) -> None:
        self.devices = set(devices)
        self.caught_up: CaughtUp | None = None
        self._follows = follows

    @property
    def is_complete(self) -> bool:
        return not self.devices and (self.caught_up is not None or not self._follows)


class HolderChanges:
    """Changes of the processes on the devices of one source."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Holder, ...]] = {}

    def changed(self, reply: Reply) -> tuple[list[ProcessesListed], bool]:
        """What is to be reported, if anything, and whether a process may have come.

        A reset may wait for nothing but to see its fault once more: a process that has come must be known by
        then. Where processes have only left, it must be known first whether the fault is still there.
        """
        held, before = holders(reply), self._known.get(reply.device)
        if not held.known:
            return ([], False) if self._known.pop(reply.device, None) is None else ([held], True)
        if held.holders == before:
            return [], False
        self._known[reply.device] = held.holders
        return [held], not set(held.holders) <= set(before or ())

    def forget(self, device: str) -> None:
        """It is listed again, or no longer: its next answer is news."""
        self._known.pop(device, None)
