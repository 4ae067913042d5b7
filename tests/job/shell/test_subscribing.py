"""A program of a job learns what the faults of its chips ask for."""

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nodeagent_job
from nodeagent.job.model import RunRequest, Wish
from nodeagent.job.watching.beats import BeatSocket
from nodeagent.job.watching.subscribers import MOST, Subscribers, text_of
from nodeagent_job import Handling
from tests.job.shell import daemon_double as daemons
from tests.job.shell.supervised import ROOT, Place
from tests.waiting import WAIT_LIMIT_S, wait_until

CALM = RunRequest(wish=Wish.RUN, run=1)
RERUN = RunRequest(
    wish=Wish.RUN, run=1, handling="RERUN_REQUEST", handling_chip="npu3", handling_code="80CB8009"
)


@pytest.fixture
def beats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BeatSocket]:
    beats = BeatSocket(str(tmp_path / "beat"))
    monkeypatch.setenv("NODEAGENT_BEAT", beats.path)
    yield beats
    beats.close()


def test_what_is_sent_names_handling_chip_and_code() -> None:
    texts = [text_of(each) for each in (CALM, RERUN, None)]
    assert texts == ["handling=NONE", "handling=RERUN_REQUEST chip=npu3 code=80CB8009", "handling=UNKNOWN"]


def test_a_subscription_gives_the_state_and_each_change_once(beats: BeatSocket) -> None:
    with nodeagent_job.subscribe() as subscription:
        assert subscription.read(0) is None
        assert beats.take(1.0) == []
        read = []
        for wanted in (CALM, CALM, RERUN, None, CALM):
            beats.send(wanted)
            read.append(subscription.read(0))
    assert read == [
        Handling("NONE"),
        None,
        Handling("RERUN_REQUEST", "npu3", "80CB8009"),
        Handling("UNKNOWN"),
        Handling("NONE"),
    ]


def test_one_that_does_not_read_gets_the_newest_state_later(beats: BeatSocket) -> None:
    with nodeagent_job.subscribe() as subscription:
        subscription.read(0)
        beats.take(1.0)
        for _ in range(1000):
            beats.send(CALM)
            beats.send(RERUN)
        subscription.read(0)
        beats.send(RERUN)
        found = subscription.read(0) or subscription._last
    assert found == Handling("RERUN_REQUEST", "npu3", "80CB8009")


def test_what_others_send_to_its_address_is_no_answer(beats: BeatSocket) -> None:
    with (
        nodeagent_job.subscribe() as subscription,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other,
    ):
        other.sendto(b"handling=RESCHEDULE", subscription._socket.getsockname())
        assert subscription.read(0) is None


def test_without_a_supervisor_there_is_nothing_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NODEAGENT_BEAT", raising=False)
    with nodeagent_job.subscribe() as subscription:
        assert subscription.read() is None
    monkeypatch.setenv("NODEAGENT_BEAT", "/nonexistent/beat")
    with nodeagent_job.subscribe() as subscription:
        assert subscription.read(0.01) is None


def test_a_program_that_has_gone_is_forgotten_and_one_without_an_address_refused(beats: BeatSocket) -> None:
    with nodeagent_job.subscribe() as subscription:
        subscription.read(0)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unbound:
        unbound.sendto(b"subscribe", beats.path)
    assert beats.take(1.0) == []
    beats.send(RERUN)
    assert (beats.bad, beats.last_bad) == (1, "subscribe: bind the socket to an address before")


def test_there_is_a_limit_of_programs() -> None:
    subscribers = Subscribers()
    assert [subscribers.add(f"\0{number}") for number in range(MOST)] == [""] * MOST
    assert subscribers.add("\0more") == f"subscribe: {MOST} programs of the job have subscribed already"
    assert subscribers.add("\0001") == ""


PROGRAM = """
import sys
import nodeagent_job
subscription = nodeagent_job.subscribe()
for _ in range(3):
    print(*subscription.read(60), file=open(sys.argv[1], "a", buffering=1))
"""


def test_an_inference_program_learns_that_it_may_make_its_request_again(place: Place, tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = (sys.executable, "-c", PROGRAM, str(told))

    def lines() -> list[str]:
        return told.read_text().splitlines() if told.exists() else []

    with (
        daemons.opened(place.socket) as daemon,
        place.started(*command, options=("--kind", "inference"), env={"PYTHONPATH": str(ROOT)}) as supervisor,
    ):
        wait_until(lambda: lines() == ["NONE  "])
        daemon.send(RERUN)
        wait_until(lambda: len(lines()) == 2)
        daemon.want(Wish.RUN, 1)
        assert supervisor.wait(WAIT_LIMIT_S) == 0
    assert [each.split() for each in lines()] == [["NONE"], ["RERUN_REQUEST", "npu3", "80CB8009"], ["NONE"]]
