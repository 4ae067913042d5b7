"""The supervisor's end of the link: what it costs without a daemon, and what it makes of a bad one."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nodeagent.job.lines import (
    Bye,
    ChipReading,
    ChipReadings,
    JobBegin,
    Line,
    ReportTaken,
    SupervisorHello,
    SupervisorRefused,
    Welcome,
    decode,
    encode,
)
from nodeagent.job.model import SECOND_NS, RunEvent, RunReport, RunRequest, Wish
from nodeagent.job.shell.link import DEFAULT_SOCKET, ConnectionLost, DaemonLink, socket_path

HELLO = SupervisorHello(pid=7, version="test")
BEGIN = JobBegin(kind="training", run=1, is_running=False, in_place=True, yields=False, reschedules=False)
WELCOME = Welcome(job="slurm:7.0", version="test")


class Daemon:
    """One connection, written and read by hand."""

    def __init__(self, path: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._connection: socket.socket | None = None

    def accept(self) -> None:
        self._connection, _ = self._listener.accept()
        self._lines = self._connection.makefile("rb")

    def read(self, count: int) -> list[Line]:
        return [decode(self._lines.readline()) for _ in range(count)]

    def send(self, *lines: Line | bytes) -> None:
        assert self._connection is not None
        for line in lines:
            self._connection.sendall(line if isinstance(line, bytes) else encode(line))

    def hang_up(self) -> None:
        assert self._connection is not None
        self._lines.close()
        self._connection.close()

    def close(self) -> None:
        self._listener.close()
        if self._connection is not None:
            self.hang_up()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    begun = Daemon(tmp_path / "jobs.sock")
    yield begun
    begun.close()


@pytest.fixture
def link(tmp_path: Path) -> Iterator[DaemonLink]:
    made = DaemonLink(str(tmp_path / "jobs.sock"), lambda: HELLO)
    yield made
    made.close()


def welcomed(link: DaemonLink, daemon: Daemon) -> None:
    link.tick(link.next_deadline_ns() or 0)
    daemon.accept()
    daemon.send(WELCOME)
    assert link.ready(0) == [WELCOME]


def report(number: int) -> RunReport:
    return RunReport(number=number, run=1, what=RunEvent.STARTED)


def said(number: int) -> RunReport:
    return RunReport(number=number, run=1, what=RunEvent.STARTED)


def test_absent_daemon_is_tried_again_later_and_later(link: DaemonLink, tmp_path: Path) -> None:
    at_ns, pauses = 0, []
    for _ in range(8):
        assert link.tick(at_ns) == [ConnectionLost(f"{tmp_path}/jobs.sock: No such file or directory")]
        assert link.tick(at_ns) == []
        due_ns = link.next_deadline_ns()
        assert due_ns is not None
        pauses.append((due_ns - at_ns) / SECOND_NS)
        at_ns = due_ns

    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert link.fileno() is None


def test_pauses_are_short_again_after_a_welcome(link: DaemonLink, tmp_path: Path) -> None:
    for at_s in range(0, 60, 6):
        link.tick(at_s * SECOND_NS)
    daemon = Daemon(tmp_path / "jobs.sock")
    welcomed(link, daemon)
    daemon.read(1)  # what is left unread would be a reset of the connection, not its end
    daemon.close()

    assert link.ready(100 * SECOND_NS) == [ConnectionLost("the daemon has ended the connection")]
    assert link.next_deadline_ns() == 100 * SECOND_NS + SECOND_NS // 5


def test_nothing_is_said_before_it_has_begun(link: DaemonLink, daemon: Daemon) -> None:
    link.send(report(1), 0)
    welcomed(link, daemon)
    assert not link.ask(1, 0)
    link.send(report(2), 0)

    link.begin(BEGIN, 0)

    assert daemon.read(4) == [HELLO, BEGIN, said(1), said(2)]
    assert link.ask(2, 0)


def test_only_what_was_not_taken_is_said_again(link: DaemonLink, daemon: Daemon) -> None:
    welcomed(link, daemon)
    link.begin(BEGIN, 0)
    for number in (1, 2, 3):
        link.send(report(number), 0)
    daemon.send(ReportTaken(number=2))
    assert link.ready(0) == [ReportTaken(number=2)]
    daemon.hang_up()
    link.ready(0)

    welcomed(link, daemon)
    link.begin(BEGIN, 0)

    assert daemon.read(4) == [HELLO, BEGIN, said(1), said(3)]
    assert link.has_untaken


def test_an_earlier_daemon_is_not_sent_what_it_does_not_know(link: DaemonLink, daemon: Daemon) -> None:
    """It would end the connection, again and again."""
    slow = RunReport(number=1, run=1, what=RunEvent.SLOW)
    link.send(slow, 0)
    welcomed(link, daemon)
    link.begin(BEGIN, 0)
    link.send(replace(slow, number=2), 0)
    link.send(report(3), 0)
    assert daemon.read(3) == [HELLO, BEGIN, report(3)]


def test_a_daemon_that_names_a_report_is_sent_it(link: DaemonLink, daemon: Daemon) -> None:
    slow = RunReport(number=1, run=1, what=RunEvent.SLOW)
    link.tick(link.next_deadline_ns() or 0)
    daemon.accept()
    daemon.send(replace(WELCOME, reports=("slow", "keeps_up")))
    link.ready(0)
    link.begin(BEGIN, 0)
    link.send(slow, 0)
    assert daemon.read(3) == [HELLO, BEGIN, slow]


def test_wishes_and_chips_come_in_their_order_however_they_are_cut(link: DaemonLink, daemon: Daemon) -> None:
    welcomed(link, daemon)
    lines: list[Line] = [
        RunRequest(wish=Wish.STOP, run=1),
        ChipReadings(number=4, chips=(ChipReading(name="npu0", known=True, holders=(7, 8)),)),
        RunRequest(wish=Wish.HOLD, run=2),
    ]
    text = b"".join(encode(line) for line in lines)

    heard = []
    for each in (text[:10], text[10:60], text[60:]):
        daemon.send(each)
        heard += link.ready(0)

    assert heard == lines


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"no json\n", "the daemon sent a line that is not understood: not JSON: "),
        (SupervisorRefused(why="the door is full"), "the daemon refuses: the door is full"),
        (Welcome(job="", version="9", protocol=2), "the daemon speaks protocol 2, this supervisor 1"),
        (RunRequest(wish=Wish.STOP, run=1), "the daemon sent a line out of turn: wanted"),
        (Bye(number=1, status=0), "the daemon sent a line out of turn: bye"),
        (b"x" * 70_000, "the daemon sent a line that is too long"),
    ],
    ids=["garbage", "refused", "another protocol", "before the welcome", "not a daemon's", "too long"],
)
def test_daemon_that_is_not_understood_is_as_good_as_none(
    link: DaemonLink, daemon: Daemon, line: Line | bytes, why: str
) -> None:
    link.tick(0)
    daemon.accept()
    daemon.send(line)

    heard = [each for _ in range(3) for each in link.ready(SECOND_NS)]

    assert [type(each) for each in heard] == [ConnectionLost]
    assert isinstance(heard[0], ConnectionLost)
    assert heard[0].why.startswith(why)
    assert link.fileno() is None
    assert link.next_deadline_ns() == SECOND_NS + SECOND_NS // 5


def test_welcome_that_does_not_come_is_not_waited_for(link: DaemonLink, daemon: Daemon) -> None:
    link.tick(0)

    assert link.tick(2 * SECOND_NS - 1) == []
    assert link.tick(2 * SECOND_NS) == [ConnectionLost("no welcome came")]


def test_daemon_that_does_not_say_what_it_wants_is_given_up(link: DaemonLink, daemon: Daemon) -> None:
    welcomed(link, daemon)
    link.begin(BEGIN, 0)

    assert link.tick(30 * SECOND_NS - 1) == []
    assert link.tick(30 * SECOND_NS) == [ConnectionLost("no request came")]


def test_daemon_that_wants_something_is_not_waited_for(link: DaemonLink, daemon: Daemon) -> None:
    welcomed(link, daemon)
    link.begin(BEGIN, 0)
    daemon.send(RunRequest(wish=Wish.HOLD, run=1))

    assert link.ready(1) == [RunRequest(wish=Wish.HOLD, run=1)]
    assert link.next_deadline_ns() is None


def test_daemon_that_does_not_read_is_given_up(link: DaemonLink, daemon: Daemon) -> None:
    welcomed(link, daemon)
    link.begin(BEGIN, 0)
    for number in range(20_000):
        link.send(replace(report(number), why="x" * 200), 0)
        if link.fileno() is None:
            break

    assert link.ready(0) == [ConnectionLost("the daemon does not read")]


def test_socket_is_that_of_the_flag_then_of_the_environment_then_the_usual_one() -> None:
    variable = {"NODEAGENT_JOBS_SOCKET": "/b"}

    assert [socket_path("/a", variable), socket_path("", variable), socket_path("", {})] == [
        "/a",
        "/b",
        DEFAULT_SOCKET,
    ]
