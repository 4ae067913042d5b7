"""What is reported of one port, and when: values in, signals out."""

from typing import Any

from nodeagent.core.model import Assertion
from nodeagent.drivers.link.faults import LinkState, faults_of
from nodeagent.drivers.link.ports import Port
from nodeagent.drivers.link.watched import QUIET_NS, WatchedPort

NEEDED = Port(name="eth0", index=2, is_needed=True)


def seen(is_up: bool, losses: int = 0, **given: Any) -> LinkState:
    given = {"is_enabled": True, "was_up": True, "text": "up" if is_up else "no carrier", **given}
    return LinkState(is_up=is_up, losses=losses, **given)


def listed(first: LinkState) -> WatchedPort:
    watched = WatchedPort(NEEDED)
    watched.begin(faults_of(NEEDED, first, 0.0), first)
    return watched


def report(watched: WatchedPort, now: LinkState, now_ns: int) -> list[tuple[str, Assertion, int]]:
    signals = watched.report(faults_of(NEEDED, now, 0.0), now, now_ns)
    return [(signal.code, signal.assertion, signal.count) for signal in signals]


def test_losses_that_nobody_saw_are_one_fault_with_their_number_that_is_over() -> None:
    watched = listed(seen(is_up=True, losses=3))
    assert report(watched, seen(is_up=True, losses=8), 1) == [
        ("PORT_DOWN", Assertion.OCCUR, 5),
        ("PORT_DOWN", Assertion.RECOVER, 1),
    ]
    assert report(watched, seen(is_up=True, losses=8), 2) == []


def test_a_port_that_is_down_and_was_up_meanwhile_stays_down() -> None:
    watched = listed(seen(is_up=False, losses=1))
    assert report(watched, seen(is_up=False, losses=4), 1) == []
    assert report(watched, seen(is_up=True, losses=4), 2) == [("PORT_DOWN", Assertion.RECOVER, 1)]


def test_after_a_report_changes_wait_for_a_second() -> None:
    watched = listed(seen(is_up=True))
    assert watched.note(1)
    report(watched, seen(is_up=False, losses=1), 1)
    assert not watched.note(2)
    assert watched.due_ns == 1 + QUIET_NS
    assert watched.note(1 + QUIET_NS)


def test_nothing_is_reported_of_a_port_that_the_daemon_does_not_know() -> None:
    assert not WatchedPort(NEEDED).note(1)


def test_of_a_port_that_never_worked_nothing_is_said_not_even_that_it_is_well() -> None:
    watched = listed(seen(is_up=False, was_up=False))
    found = faults_of(NEEDED, seen(is_up=False, was_up=False), 0.0)
    assert (found.codes, found.unread) == ({}, ("PORT_SLOW", "PORT_DOWN", "ETHERNET_PORT_DOWN"))
    assert "link_down.needed" not in watched.readings(found, seen(is_up=False, was_up=False))
