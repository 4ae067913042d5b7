"""What a node may be like when its library is asked.

A state is a function that changes a healthy node, and which process asks: one that was there before, or a
new one.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from nodeagent.emulator.node import EmulatedNode

PRODUCTS: Final = ("8x910B", "16xA3", "4x300IDuo", "8x950")
HBM: Final = 0x80E01801
CARD_LOST: Final = 0x40F84E00
ONCE: Final = 2
OCCUPIED: Final = -8020
"""What libdcmi makes of the driver's ``DRV_ERROR_RESOURCE_OCCUPIED``."""
INBAND, UNKNOWN_CHANNEL = 1, 7
EVERY_CARD: Final = 0xFF
KILL_LIST: Final = "custom_process.cfg"


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """``resets``: (card, device, channel), each from the same state, or none: then everything is asked.

    ``subscriptions``: instead, so many in one process, one after the other, which was there before the change
    and receives ``events`` of it.
    """

    name: str
    change: Callable[[EmulatedNode], None]
    long_lived: bool = False
    resets: Callable[[int], Sequence[tuple[int, int, int]]] = field(default=lambda _: ())
    subscriptions: int = 0
    events: int = 0


def healthy(node: EmulatedNode) -> None:
    """Nothing is changed."""


def with_a_code(node: EmulatedNode) -> None:
    node.raise_code("npu1", HBM)


def dropped(node: EmulatedNode) -> None:
    node.drop("npu1")


def removed(node: EmulatedNode) -> None:
    node.take_out("npu1")


def removed_last(node: EmulatedNode) -> None:
    node.take_out(node.names()[-1])


def held(node: EmulatedNode) -> None:
    node.hold("npu1", 4711)


def held_by_a_listed_process(node: EmulatedNode) -> None:
    """The library kills it. It is on a chip that no reset of card 0 hits."""
    pid = os.posix_spawnp("sleep", ("sleep", "60"), os.environ)
    node.hold("npu3", pid)
    (node.directory / KILL_LIST).write_text(f"AllowKilledWhenResetNPU : sleep : {pid}\n")


def held_by_another_process(node: EmulatedNode) -> None:
    """With the number of one on the list, and another name."""
    held_by_a_listed_process(node)
    listed = node.directory / KILL_LIST
    listed.write_text(listed.read_text().replace("sleep", "exporter"))


def dropped_and_held(node: EmulatedNode) -> None:
    node.hold("npu1", 4711)
    node.drop("npu1")


def events_come(node: EmulatedNode) -> None:
    """A fault comes, comes again, ends; one is only sent, another is of a chip that has dropped."""
    node.raise_code("npu1", HBM, severity=1)
    node.raise_code("npu1", HBM, severity=1)
    node.clear_code("npu1", HBM)
    node.send_event("npu0", CARD_LOST, ONCE, severity=3, name="it has dropped")
    node.drop("npu3")
    node.raise_code("npu3", HBM)


def events_come_of_a_removed_one(node: EmulatedNode) -> None:
    node.take_out("npu1")
    node.raise_code("npu1", HBM)
    node.raise_code("npu3", HBM)


def refusing_slots(node: EmulatedNode) -> None:
    """The driver has no slot left for this process."""
    prefix = "dcmiv2" if node.state.node.generation == 2 else "dcmi"
    node.answer(OCCUPIED, function=f"{prefix}_subscribe_fault_event", times=1)


def all_dropped(node: EmulatedNode) -> None:
    for name in node.names():
        node.drop(name)


def each_card(cards: int) -> Sequence[tuple[int, int, int]]:
    return [(card, 0, INBAND) for card in [*range(cards), cards]]


def few_cards(cards: int) -> Sequence[tuple[int, int, int]]:
    """The first two, and one that there is not."""
    return [(card, 0, INBAND) for card in (0, 1, cards)]


def first_card(cards: int) -> Sequence[tuple[int, int, int]]:
    return [(0, 0, INBAND)]


def odd_ones(cards: int) -> Sequence[tuple[int, int, int]]:
    """By the second device, by what is no device, by no channel, and all cards at once."""
    return [(0, 1, INBAND), (0, 2, INBAND), (0, 0, UNKNOWN_CHANNEL), (EVERY_CARD, 0, INBAND)]


def _asked(change: Callable[[EmulatedNode], None]) -> tuple[State, ...]:
    name = change.__name__.replace("_", " ")
    return (
        State(name=f"{name}, new process", change=change),
        State(name=f"{name}, process from before", change=change, long_lived=True),
    )


def _reset(change: Callable[[EmulatedNode], None]) -> tuple[State, ...]:
    name = f"reset, {change.__name__.replace('_', ' ')}"
    return (
        State(name=f"{name}, new process", change=change, resets=few_cards),
        State(name=f"{name}, process from before", change=change, resets=few_cards, long_lived=True),
    )


STATES: Final = (
    State(name="healthy", change=healthy),
    State(name="with a code", change=with_a_code),
    *_asked(dropped),
    *_asked(all_dropped),
    *_asked(removed),
    *_asked(removed_last),
    State(name="held", change=held),
    State(name="events", change=events_come, subscriptions=2, events=5),
    State(name="events of a removed chip", change=events_come_of_a_removed_one, subscriptions=1, events=1),
    State(name="events, no slot", change=refusing_slots, subscriptions=2),
    *_asked(dropped_and_held),
    State(name="reset, healthy", change=healthy, resets=each_card),
    State(name="reset, odd ones", change=healthy, resets=odd_ones),
    State(name="reset, held", change=held, resets=few_cards),
    State(name="reset, held by a listed process", change=held_by_a_listed_process, resets=first_card),
    State(name="reset, held by another process", change=held_by_another_process, resets=first_card),
    *_reset(dropped),
    *_reset(dropped_and_held),
)
