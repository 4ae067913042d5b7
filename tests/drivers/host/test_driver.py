"""How the driver reports what its checks find: as it changes, and what it cannot look at stays as it was."""

from collections.abc import Sequence

import pytest

from nodeagent.drivers.api import Unavailable
from nodeagent.drivers.host.check import CheckResult
from nodeagent.drivers.host.driver import NOTHING, HostDriver
from nodeagent.drivers.host.edac import Memory
from nodeagent.wire import Batch, CaughtUp, Following
from tests.drivers.host.node_tree import NodeTree

FAULT = ("node", "SERVICE_DOWN.a")


class Said:
    """Implements ``Emit``: what was reported, in order."""

    def __init__(self) -> None:
        self.reports: list[Following] = []

    def __call__(self, report: Following) -> None:
        self.reports.append(report)

    def enqueue(self, report: Batch) -> None:
        raise AssertionError("order counts here")

    def taken(self) -> list[object]:
        """Signals as (code, assertion), and what was caught up with as its codes; forgets them."""
        said: list[object] = []
        for report in self.reports:
            if isinstance(report, Batch):
                said += [(signal.code, signal.assertion.value) for signal in report.signals]
            elif isinstance(report, CaughtUp):
                said.append([active.code for active in report.active or ()])
        self.reports.clear()
        return said


class Check:
    """Finds what it is given, one after the other; an error is raised."""

    def __init__(self, *finds: CheckResult | OSError, here: bool = True) -> None:
        self._finds = list(finds)
        self._here = here

    def is_here(self) -> bool:
        return self._here

    def look(self) -> CheckResult:
        found = self._finds.pop(0)
        if isinstance(found, OSError):
            raise found
        return found


def driver(node: NodeTree, said: Said, **checks: Check) -> HostDriver:
    return HostDriver(memory=Memory(node.sysfs), checks=checks, emit=said)


def found(*active: tuple[str, str]) -> CheckResult:
    return CheckResult(active={finding: {"service": "a.service"} for finding in active})


def listed(made: HostDriver, said: Said, times: int) -> Sequence[list[object]]:
    every = []
    for _ in range(times):
        made.devices()
        every.append(said.taken())
    return every


def test_nothing_is_reported_before_the_greeting_and_then_each_change(node: NodeTree) -> None:
    said = Said()
    made = driver(node, said, a=Check(found(FAULT), found(FAULT), found()))

    assert listed(made, said, 4) == [
        [],
        [("SERVICE_DOWN.a", "occur"), ["SERVICE_DOWN.a"]],
        [],
        [("SERVICE_DOWN.a", "recover")],
    ]


def test_what_cannot_be_looked_at_stays_and_holds_up_nobody(
    node: NodeTree, capfd: pytest.CaptureFixture[str]
) -> None:
    said = Said()
    failing = Check(found(FAULT), OSError("no"), OSError("no"), found())
    other = Check(found(), found(("node", "110001020")), found(), found())
    made = driver(node, said, first=failing, second=other)
    listed(made, said, 2)

    assert listed(made, said, 1) == [[("110001020", "occur")]]
    assert made.devices().readings == {"check_failed.first": 1}
    assert capfd.readouterr().err == "first cannot be looked at: no\n"
    said.taken()
    assert listed(made, said, 1) == [[("SERVICE_DOWN.a", "recover")]]
    assert capfd.readouterr().err == "first can be looked at again\n"


def test_modules_that_cannot_be_listed_hold_up_no_check(
    node: NodeTree, capfd: pytest.CaptureFixture[str]
) -> None:
    said = Said()
    made = driver(node, said, a=Check(found(), found(FAULT)))
    controller = node.module("mc0/dimm0", "A1").parent
    listed(made, said, 2)
    controller.rename(controller.with_name("away"))
    controller.touch()

    population = made.devices()

    assert [device.device for device in population.devices] == ["dimm:A1"]
    assert population.readings == {"check_failed.memory modules": 1}
    assert said.taken() == [("SERVICE_DOWN.a", "occur")]
    assert capfd.readouterr().err.startswith("memory modules cannot be listed: ")


def test_a_node_that_has_nothing_to_look_at_has_no_such_source(node: NodeTree) -> None:
    made = driver(node, Said(), a=Check(here=False))

    with pytest.raises(Unavailable, match=NOTHING) as refused:
        made.open()
    assert refused.value.absent


def test_one_part_of_a_node_is_enough(node: NodeTree) -> None:
    driver(node, Said(), a=Check(here=False), b=Check(here=True)).open()
    node.module("mc0/dimm0")
    driver(node, Said(), a=Check(here=False)).open()
