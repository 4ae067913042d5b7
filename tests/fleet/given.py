"""Nodes and news to decide about: few, and easy to distinguish."""

from datetime import timedelta

from nodeagent.client import Device, Event, EventKind, Handling, Kind, Position, Verdict
from nodeagent.fleet.nodes import Endpoint
from nodeagent.fleet.state import Contact, NodeState, with_contact
from tests.client import given

AT = given.AT
LATER = AT + timedelta(minutes=1)
ENDPOINT = Endpoint(name="gpu-17", address="gpu-17.cluster:9443")


def position(seq: int, uuid: str = "store-a", epoch: int = 1) -> Position:
    return Position(uuid=uuid, epoch=epoch, seq=seq)


def answering(name: str = "gpu-17") -> NodeState:
    """A node of which nothing is known but that it answers."""
    endpoint = Endpoint(name=name, address=f"{name}.cluster:9443")
    return with_contact(NodeState(endpoint=endpoint), Contact.ANSWERS, "", AT, name)


def device(
    name: str,
    verdict: Verdict = Verdict.ALLOW,
    handling: Handling = Handling.NONE,
    *,
    kind: Kind = Kind.CHIP,
    codes: tuple[str, ...] = (),
) -> Device:
    return given.device(name, verdict, handling=handling, kind=kind, reasons=given.reasons(*codes))


def event(
    seq: int,
    name: str = "gpu0",
    verdict: Verdict = Verdict.ISOLATE,
    *,
    handling: Handling = Handling.NONE,
    kind: EventKind = EventKind.RAISED,
    codes: tuple[str, ...] = (),
    uuid: str = "store-a",
    epoch: int = 1,
    was: str = "",
) -> Event:
    """What became of a chip."""
    return Event(
        position=position(seq, uuid, epoch),
        at=AT,
        kind=kind,
        device=name,
        device_id=f"{name}-id",
        device_kind=Kind.CHIP,
        level=None,
        verdict=verdict,
        handling=handling,
        subhealthy=False,
        network_unhealthy=False,
        observed=True,
        code=codes[0] if codes else "",
        name="",
        condition_id="",
        condition_level=None,
        rule="",
        source="",
        count=1,
        user_induced=False,
        unknown=False,
        injected=False,
        userspace=False,
        why="",
        reasons=given.reasons(*codes),
        evidence={"was": was} if was else {},
    )
