"""The calls that a daemon makes of the vendor's libdcmi, as ``traced.c`` notes them, beside its events.

It only reads and shows; what has to hold of them is judged where it is asked for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from nodeagent.client import Event
from nodeagent.emulator.node import EmulatedNode

LOG: Final = "calls.log"

RESET: Final = "dcmi_set_device_reset"
PROCESSES: Final = "dcmi_get_device_resource_info"
BOOT_STATUS: Final = "dcmi_get_device_boot_status"
CODES: Final = "dcmi_get_device_errorcode_v2"

OF_V1: Final[Mapping[str, str]] = {
    "dcmiv2_reset_device": RESET,
    "dcmiv2_get_device_proc_mem_info": PROCESSES,
    "dcmiv2_get_device_boot_status": BOOT_STATUS,
    "dcmiv2_get_device_error_code_list": CODES,
}
"""What a 950's calls are called of other chips."""

SHOWN: Final[Mapping[str, str]] = {
    RESET: "by channel",
    PROCESSES: "processes:",
    BOOT_STATUS: "boot status",
    CODES: "codes:",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """``shown``: what the call gave, -1 where it gave nothing; ``device`` as the daemon names it."""

    at: datetime
    process: int
    name: str
    device: str
    answer: int
    shown: int

    @property
    def outcome(self) -> str:
        """In words."""
        if self.answer != 0:
            return f"answers {self.answer}"
        return f"{SHOWN[self.name]} {self.shown}" if self.name in SHOWN else "answers 0"


def begin(node: EmulatedNode) -> None:
    """From now on calls are noted."""
    (node.directory / LOG).touch()


def calls(node: EmulatedNode) -> list[Call]:
    """So far, oldest first."""
    names = {(node.chip(name).card_id, node.chip(name).device_id): name for name in node.names()}
    found = []
    for line in (node.directory / LOG).read_text().splitlines():
        at_us, process, name, card, device, answer, shown = line.split()
        found.append(
            Call(
                at=datetime.fromtimestamp(int(at_us) / 1e6, UTC),
                process=int(process),
                name=OF_V1.get(name, name),
                device=names.get((int(card), int(device)), f"card {card} device {device}"),
                answer=int(answer),
                shown=int(shown),
            )
        )
    return sorted(found, key=lambda call: call.at)


def roles(found: Sequence[Call]) -> Mapping[int, str]:
    """Of each process: what resets, the daemon's worker, which was there before, or what only looks."""
    named = {call.process: "looks" for call in found}
    if found:
        named[found[0].process] = "worker"
    return named | {call.process: "resets" for call in found if call.name == RESET}


def shown(found: Sequence[Call], events: Iterable[Event]) -> Iterator[str]:
    """A line for each event and for alike calls of a process in between, with the seconds since the first."""
    who = roles(found)
    both: list[Call | Event] = [*events, *found]
    timeline = sorted(both, key=lambda each: each.at)
    polls: dict[str, list[Call]] = {}
    for each in timeline:
        if isinstance(each, Call) and each.name != RESET:
            polls.setdefault(f"{who[each.process]:6} {each.name} {each.outcome}", []).append(each)
            continue
        for line in _of_calls(polls):
            yield _line(timeline[0].at, *line)
        polls = {}
        if isinstance(each, Call):
            words = f"call   {who[each.process]:6} {each.name} {each.device} {each.outcome}"
            yield _line(timeline[0].at, each.at, words)
        else:
            yield _line(timeline[0].at, each.at, _of_event(each))
    for line in _of_calls(polls):
        yield _line(timeline[0].at, *line)


def _of_calls(polls: Mapping[str, Sequence[Call]]) -> Iterator[tuple[datetime, str]]:
    for words, alike in polls.items():
        devices = dict.fromkeys(call.device for call in alike)
        times = f", {len(alike)} times" if len(alike) > 1 else ""
        yield alike[0].at, f"call   {words}: {', '.join(devices)}{times}"


def _line(began: datetime, at: datetime, words: str) -> str:
    return f"{(at - began).total_seconds():8.3f} s  {words}"


def _of_event(event: Event) -> str:
    words = f": {event.why}" if event.why else ""
    devices = event.evidence.get("devices", "")
    return f"event  {event.kind} {event.device} {event.verdict}{words}{f' [{devices}]' if devices else ''}"
