"""What is known of a node follows from what it said, whatever the order of list and events."""

from dataclasses import replace
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeagent.client import Event, EventKind, Handling, Kind, Verdict
from nodeagent.core.state.limits import MAX_DEVICES
from nodeagent.fleet import state
from nodeagent.fleet.news import What, news_of
from nodeagent.fleet.nodes import from_addresses
from nodeagent.fleet.state import Contact, NodeState, with_contact
from tests.fleet.given import AT, LATER, answering, device, event, position

CHIPS = ("gpu0", "gpu1")
CHANGES = st.lists(st.tuples(st.sampled_from(CHIPS), st.sampled_from(list(Verdict))), max_size=12)


def test_the_strictest_of_the_node_and_its_chips_decides() -> None:
    devices = [
        device("node", Verdict.ALLOW, kind=Kind.HOST),
        device("gpu0", Verdict.ISOLATE, Handling.RESCHEDULE, codes=("XID_79", "XID_79")),
        device("gpu1", Verdict.NO_NEW_JOBS),
        device("gpu2", Verdict.UNKNOWN),
    ]
    node = state.with_devices(answering(), devices, position(7))
    assert (node.verdict, node.handling) == (Verdict.ISOLATE, Handling.RESCHEDULE)
    assert [part.codes for part in node.chips] == [("XID_79",), (), ()]


def test_a_port_alone_decides_nothing() -> None:
    devices = [device("node", kind=Kind.HOST), device("eth2", Verdict.ISOLATE, kind=Kind.LINK)]
    assert state.with_devices(answering(), devices, position(7)).verdict is Verdict.ALLOW


def test_a_node_of_which_no_device_is_known_is_unknown() -> None:
    assert answering().verdict is Verdict.UNKNOWN


def test_a_node_that_does_not_answer_is_unknown_and_what_was_known_stays() -> None:
    node = state.with_devices(answering(), [device("gpu0", Verdict.ISOLATE)], position(7))
    away = state.with_contact(node, Contact.AWAY, "UNAVAILABLE: refused", LATER)
    assert (away.verdict, away.handling, away.since) == (Verdict.UNKNOWN, Handling.NONE, LATER)
    back = state.with_contact(away, Contact.ANSWERS, "", LATER, "gpu-17")
    assert (back.verdict, back.reason) == (Verdict.ISOLATE, "")


def test_no_node_calls_itself_by_more_than_a_name() -> None:
    """It is kept, is on each line about the node, and is a label in Prometheus."""
    long = state.with_contact(answering(), Contact.ANSWERS, "", LATER, "x" * 60_000_000)
    assert long.said_name == "x" * 253


def test_the_time_of_a_contact_is_that_of_its_beginning() -> None:
    away = state.with_contact(answering(), Contact.AWAY, "first", AT)
    still = state.with_contact(away, Contact.AWAY, "second", LATER)
    assert (still.since, still.reason) == (AT, "second")


def test_an_event_that_the_list_contains_already_changes_nothing() -> None:
    node = state.with_devices(answering(), [device("gpu0")], position(7))
    assert state.with_event(node, event(7)) is node
    assert state.with_event(node, event(8)).verdict is Verdict.ISOLATE


def test_a_device_that_is_forgotten_decides_nothing_any_more() -> None:
    """An event of the node ends its id, and those of its parts with it."""
    known = [device("node", kind=Kind.HOST), device("0000:3b:00.0", Verdict.ISOLATE)]
    part = device("0000:3b:00.0-id/gi1", Verdict.ISOLATE)
    node = state.with_devices(answering(), [*known, replace(part, id=part.name)], position(7))
    after = state.with_event(node, event(8, "node", Verdict.ALLOW, was="0000:3b:00.0-id"))
    assert (node.verdict, after.verdict, [*after.parts]) == (Verdict.ISOLATE, Verdict.ALLOW, ["node-id"])


def test_a_device_that_gets_another_id_is_one_device() -> None:
    node = state.with_devices(answering(), [device("gpu0", Verdict.ISOLATE)], position(7))
    after = state.with_event(node, replace(event(8, "gpu0", Verdict.ALLOW, was="gpu0-id"), device_id="GPU-1"))
    assert {each: part.verdict for each, part in after.parts.items()} == {"GPU-1": Verdict.ALLOW}


def test_a_node_has_no_more_devices_than_a_daemon_may_have() -> None:
    assert state.MAX_PARTS == MAX_DEVICES
    devices = [device(f"gpu{number}") for number in range(MAX_DEVICES)]
    node = state.with_devices(answering(), devices, position(7))
    assert len(state.with_event(node, event(8, "gpu0")).parts) == MAX_DEVICES
    with pytest.raises(state.TooMuch, match="it names more than 1024 devices"):
        state.with_event(node, event(8, "one more"))
    with pytest.raises(state.TooMuch, match="it names more than 1024 devices"):
        state.with_devices(answering(), [*devices, device("one more")], position(7))


@pytest.mark.parametrize(
    "said", [event(8, "x" * 32768), event(8, codes=tuple(f"{number:04}" * 250 for number in range(40)))]
)
def test_of_one_device_no_more_is_kept_than_a_daemon_shows(said: Event) -> None:
    with pytest.raises(state.TooMuch, match="more than 32768 characters"):
        state.with_event(answering(), said)


def test_numbers_of_another_store_or_epoch_are_not_compared() -> None:
    node = state.with_devices(answering(), [device("gpu0")], position(7))
    assert state.with_event(node, event(1, epoch=2)).verdict is Verdict.ISOLATE
    assert state.with_event(node, event(1, uuid="store-b")).verdict is Verdict.ISOLATE


def test_the_list_is_asked_for_again_where_devices_come_or_go() -> None:
    asked = {kind for kind in EventKind if state.changes_the_list(event(1, kind=kind))}
    assert asked == {EventKind.DEVICE_SEEN, EventKind.DEVICE_GONE, EventKind.DEVICE_REPLACED}


@given(CHANGES, st.integers(min_value=0, max_value=12))
def test_a_list_read_amid_the_events_leads_to_the_same_state(
    changes: list[tuple[str, Verdict]], read_at: int
) -> None:
    """The list is read after the stream has begun: it may be ahead of any of the events."""
    begun = state.with_devices(answering(), [device(name) for name in CHIPS], position(0))
    events = [event(seq, name, verdict) for seq, (name, verdict) in enumerate(changes, 1)]
    streamed = reduce(state.with_event, events, begun)
    ahead = reduce(state.with_event, events[:read_at], begun)
    newest = min(read_at, len(events))
    listed = state.with_devices(
        begun, [device(part.name, part.verdict) for part in ahead.parts.values()], position(newest)
    )
    read = reduce(state.with_event, events, listed)
    assert {part.name: part.verdict for part in read.parts.values()} == {
        part.name: part.verdict for part in streamed.parts.values()
    }


@pytest.mark.parametrize(
    ("before", "after", "news"),
    [
        (Contact.NEW, Contact.ANSWERS, None),
        (Contact.NEW, Contact.AWAY, What.AWAY),
        (Contact.NEW, Contact.REFUSES, What.REFUSES),
        (Contact.ANSWERS, Contact.ANSWERS, None),
        (Contact.ANSWERS, Contact.AWAY, What.AWAY),
        (Contact.AWAY, Contact.AWAY, None),
        (Contact.AWAY, Contact.ANSWERS, What.BACK),
        (Contact.AWAY, Contact.REFUSES, What.REFUSES),
        (Contact.REFUSES, Contact.AWAY, What.AWAY),
        (Contact.REFUSES, Contact.ANSWERS, What.BACK),
    ],
)
def test_what_is_news_about_whether_a_node_answers(
    before: Contact, after: Contact, news: What | None
) -> None:
    assert news_of(before, after) is news


def test_a_node_that_is_known_by_its_address_has_its_own_name_as_label() -> None:
    (found,) = from_addresses("nodes.cluster", 9443, ["10.0.0.7"])
    assert NodeState(endpoint=found).label == "10.0.0.7:9443"
    assert with_contact(NodeState(endpoint=found), Contact.ANSWERS, "", AT, "gpu-17").label == "gpu-17"
    assert with_contact(answering("named"), Contact.ANSWERS, "", AT, "gpu-17").label == "named"
