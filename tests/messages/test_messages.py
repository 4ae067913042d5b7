"""Every word of the core has its number in the API, and every value of it arrives whole."""

import dataclasses
from collections.abc import Mapping
from enum import StrEnum

import pytest

from nodeagent import client
from nodeagent.api import messages
from nodeagent.client import received
from nodeagent.core.model import (
    Assertion,
    EventKind,
    Handling,
    Holder,
    JobNote,
    JobPolicy,
    JobStage,
    JobView,
    Kind,
    Level,
    Peer,
    Recommendation,
    Verdict,
    View,
    Wanted,
)
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
        (JobStage, enums.JOB_STAGES, types_pb2.JobStage),
        (Wanted, enums.WANTED, types_pb2.Wanted),
        (Recommendation, enums.RECOMMENDATIONS, types_pb2.Recommendation),
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


def test_a_device_with_unknown_users_differs_from_a_free_one() -> None:
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
        (client.Holder(pid=7, start_time=4711, command="python3", job="slurm:42.0"),),
    ]


SUPERVISED = JobView(
    name="slurm:7.0",
    kind="training",
    devices=("gpu0-id",),
    recommended=Recommendation.HOLD,
    stage=JobStage.HOLDING,
    wanted=Wanted.HOLD,
    run=2,
    why="gpu0 is reset",
    code="XID_95",
    device_id="gpu0-id",
    handling="STOP_RESET_RESTART",
    policy=JobPolicy(in_place=True, strategy="ignore"),
    peer=Peer(pid=4711, start_time=9, uid=1000),
    since_ns=1_000_000_000,
    due_ns=601_000_000_000,
)
CLAIMED = JobView(name="slurm:8", kind="", devices=("gpu1-id",), recommended=Recommendation.NONE)


def published(*names: str) -> messages.Published:
    devices = tuple(
        dataclasses.replace(device(event()), name=name, id=f"{name}-id") for name in ("gpu0", "gpu1")
    )
    view = View(devices=devices, jobs=(SUPERVISED, CLAIMED))
    store_id = StoreId(uuid="u", epoch=1)
    publication = Publication(view=view, store_id=store_id, seq=1, durable=True, wall_offset_ns=0)
    return messages.Published(publication, names)


def test_a_job_arrives_whole_and_one_without_a_supervisor_is_distinguished() -> None:
    supervised, claimed = map(received.job, messages.jobs(published()))
    assert (supervised.devices, supervised.device_ids, supervised.device) == (("gpu0",), ("gpu0-id",), "gpu0")
    assert (supervised.stage, supervised.wanted, supervised.run) == (JobStage.HOLDING, Wanted.HOLD, 2)
    assert supervised.handling is Handling.STOP_RESET_RESTART
    assert supervised.policy == client.JobPolicy(
        in_place=True, yields=False, reschedules=False, strategy="ignore"
    )
    assert (supervised.pid, supervised.uid, supervised.status) == (4711, 1000, None)
    assert supervised.since is not None
    assert supervised.due_at is not None
    assert (supervised.due_at - supervised.since).total_seconds() == 600
    assert (claimed.stage, claimed.wanted, claimed.since, claimed.due_at) == (None, None, None, None)


def test_the_status_of_a_job_that_has_ended_well_is_distinguished_from_none() -> None:
    ended = dataclasses.replace(SUPERVISED, stage=JobStage.ENDED, wanted=None, status=0)
    assert received.job(messages.job(published(), ended)).status == 0


@pytest.mark.parametrize(
    ("names", "jobs"),
    [((), ["slurm:7.0", "slurm:8"]), (("gpu1",), ["slurm:8"]), (("node",), ["slurm:7.0", "slurm:8"])],
)
def test_a_filter_of_devices_leaves_the_jobs_that_use_one_of_them(
    names: tuple[str, ...], jobs: list[str]
) -> None:
    assert [job.name for job in messages.jobs(published(*names))] == jobs


def test_an_event_shows_of_which_job_it_is_and_another_of_none() -> None:
    note = JobNote(
        name="slurm:7.0", run=2, stage=JobStage.RUNNING, why="healed", recommended=Recommendation.NONE
    )
    notes = [
        received.event(
            messages.event(StoredEvent(seq=1, wall_ns=0, event=each)), types_pb2.StoreId(uuid="u", epoch=1)
        ).job
        for each in (dataclasses.replace(event(kind=EventKind.JOB_RERUN), job=note), event())
    ]
    assert notes == [
        client.JobNote(
            name="slurm:7.0",
            run=2,
            stage=JobStage.RUNNING,
            why="healed",
            recommended=Recommendation.NONE,
            strategy="",
        ),
        None,
    ]
