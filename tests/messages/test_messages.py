"""Every word of the core has its number in the API, and every value of it arrives whole."""

import dataclasses
from collections.abc import Mapping
from enum import StrEnum

import pytest

from nodeagent.api import messages
from nodeagent.client import received, values
from nodeagent.core.model import Assertion, EventKind, Handling, Holder, Kind, Level, Verdict, View
from nodeagent.messages import enums, mapping
from nodeagent.messages.pb import types_pb2
from nodeagent.store.records import Publication, StoredEvent, StoreId
from tests.api.samples import device, event


@pytest.mark.parametrize(
    ("words", "numbers", "enum"),
    [
        (Kind, enums.KINDS, types_pb2.Kind),
        (Level, enums.LEVELS, types_pb2.Level),
        (Verdict, enums.VERDICTS, types_pb2.Verdict),
        (Handling, enums.HANDLINGS, types_pb2.Handling),
        (EventKind, enums.EVENT_KINDS, types_pb2.EventKind),
        (Assertion, enums.ASSERTIONS, types_pb2.Assertion),
    ],
)
def test_words_and_numbers_are_one_to_one(
    words: type[StrEnum], numbers: Mapping[StrEnum, int], enum: type[types_pb2.Kind]
) -> None:
    assert set(numbers) == set(words)
    assert sorted(numbers.values()) == sorted(enum.values())[1:]  # the first is _UNSPECIFIED


def test_a_time_arrives_to_the_nanosecond() -> None:
    at_ns = 1_700_000_000_123_456_789
    message = messages.event(StoredEvent(seq=1, wall_ns=at_ns, event=event()))
    assert mapping.wall_ns(message.at) == at_ns


def test_a_device_that_was_never_observed_has_no_time_of_it() -> None:
    never = dataclasses.replace(device(event()), observed=False, observed_ns=0)
    view = View(devices=(never,))
    publication = Publication(
        view=view, store_id=StoreId(uuid="u", epoch=1), seq=1, durable=True, wall_offset_ns=-5
    )
    (message,) = messages.Published(publication).devices()
    assert not message.HasField("observed_at")


def test_a_device_without_known_holders_is_told_apart_from_a_free_one() -> None:
    holder = Holder(pid=7, start_time=4711, command="python3", job="slurm:42.0")
    views = [
        dataclasses.replace(device(event()), name=name, holders=holders)
        for name, holders in (("a-unknown", None), ("b-free", ()), ("c-held", (holder,)))
    ]
    publication = Publication(
        view=View(devices=tuple(views)),
        store_id=StoreId(uuid="u", epoch=1),
        seq=1,
        durable=True,
        wall_offset_ns=0,
    )
    holders = [received.device(message).holders for message in messages.Published(publication).devices()]
    assert holders == [
        None,
        (),
        (values.Holder(pid=7, start_time=4711, command="python3", job="slurm:42.0"),),
    ]
