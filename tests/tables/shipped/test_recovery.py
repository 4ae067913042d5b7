"""What the shipped tables make of Xids where the driver says which recovery a GPU needs."""

from functools import cache
from pathlib import Path

import pytest

from nodeagent.core.catalog.levels import BELOW_RESET
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    Assertion,
    CatalogChanged,
    DeviceSeen,
    DeviceView,
    EventKind,
    Handling,
    Kind,
    Recovery,
    Signal,
    SourceBack,
    Started,
    Verdict,
)
from nodeagent.drivers.kmsg.match import Matcher
from nodeagent.emulator.gpus import Instance, xid_line
from nodeagent.wire import as_patterns
from tests.core.build import active
from tests.shipped import shipped_catalog

REPOSITORY = Path(__file__).parents[3]
PCI = "0000:3b:00"
FIVE_IN_AN_HOUR = 5


@cache
def matcher() -> Matcher:
    return Matcher(as_patterns(shipped_catalog().patterns))


class Node:
    """One GPU whose driver reports its recovery action, and time that passes as the test says."""

    def __init__(self) -> None:
        catalog = shipped_catalog()
        self.engine = Engine({catalog.digest: catalog})
        self.now_ns = 0
        self.engine.step(0, CatalogChanged(digest=catalog.digest))
        self.engine.step(0, Started(boot_id="boot", version="1"))
        attributes = {"pci": f"{PCI}.0", "recovery_action": "told"}
        gpu = DeviceSeen(
            source="nvidia",
            device="gpu0",
            kind=Kind.CHIP,
            vendor="nvidia",
            identity="GPU-0",
            attributes=attributes,
        )
        self.engine.step(0, gpu)
        self.engine.step(0, SourceBack(source="nvidia"))
        self.engine.step(0, active(device="gpu0", begun_s=0, source="nvidia"))
        self.verdicts: set[Verdict] = set()
        self.promoted: list[str] = []

    def report(self, signal: Signal, after_s: float = 0.1) -> None:
        self.now_ns += round(after_s * SECOND_NS)
        for event in self.engine.step(self.now_ns, signal).events:
            self.verdicts.add(event.verdict)
            self.promoted += [event.code] if event.kind is EventKind.PROMOTED else []

    def event(self, xid: int, instance: Instance | None = None, after_s: float = 0.1) -> None:
        """By NVML."""
        device = "gpu0" if instance is None else f"gpu0/gi{instance.gpu}"
        code = f"XID_{xid}"
        self.report(
            Signal(source="nvidia", device=device, code=code, assertion=Assertion.ONCE), after_s=after_s
        )

    def line(self, xid: int, detail: str = "", instance: Instance | None = None, process: int = 7) -> None:
        """By the kernel's log."""
        (match,) = matcher().match([xid_line(PCI, xid, detail, process_id=process, instance=instance)])
        assert match is not None
        self.report(
            Signal(
                source="kmsg",
                device=match.device,
                code=match.code,
                assertion=Assertion.ONCE,
                evidence=match.groups,
            )
        )

    def view(self, device: str) -> DeviceView:
        return next(view for view in self.engine.view().devices if view.name == device)


def below_a_reset() -> list[int]:
    rows = ((xid, shipped_catalog().rows[f"XID_{xid}"]) for xid in range(1, 174) if xid != 154)
    return [xid for xid, row in rows if row.level in BELOW_RESET and row.recovery is not Recovery.LEVEL]


@pytest.mark.parametrize("instance", [None, Instance(gpu=5, compute=0)], ids=["gpu", "instance"])
def test_five_in_an_hour_of_what_needs_no_recovery_take_nothing_out_of_service(
    instance: Instance | None,
) -> None:
    devices = {"node", "gpu0", *(["gpu0/gi5"] if instance is not None else [])}
    found = {}
    for xid in below_a_reset():
        node = Node()
        for turn in range(FIVE_IN_AN_HOUR):
            node.event(xid, instance, after_s=720)
            node.line(xid, instance=instance, process=4000 + turn)
        listed = {view.name for view in node.engine.view().devices}
        found[xid] = node.verdicts - {Verdict.ALLOW}, node.promoted, listed ^ devices

    assert {xid: wrong for xid, wrong in found.items() if any(wrong)} == {}


def test_there_are_such_xids() -> None:
    assert {13, 31, 43, 45, 68, 94} <= set(below_a_reset())


@pytest.mark.parametrize("line_first", [True, False], ids=["line first", "event first"])
@pytest.mark.parametrize("xid", [94, 95])
@pytest.mark.parametrize(
    ("ending", "verdict", "handling"),
    [
        ("RST: Yes, D-RST: No", Verdict.ISOLATE, Handling.RESCHEDULE),
        ("RST: No, D-RST: Yes", Verdict.NO_NEW_JOBS, Handling.RESET_WHEN_IDLE),
        ("RST: No, D-RST: No", Verdict.ALLOW, Handling.RESTART_JOB),
    ],
)
def test_a_memory_error_is_as_grave_as_its_line_ends(
    ending: str, verdict: Verdict, handling: Handling, xid: int, line_first: bool
) -> None:
    node = Node()
    detail = f"{'Contained' if xid == 94 else 'Uncontained'}: LTC TAG (0x2, 0x1). {ending}"
    if line_first:
        node.line(xid, detail)
    node.event(xid)
    if not line_first:
        node.line(xid, detail)
    view = node.view("gpu0")
    assert (view.verdict, view.handling) == (verdict, handling)


def test_a_memory_error_of_an_instance_that_needs_a_drain_concerns_the_gpu() -> None:
    node = Node()
    instance = Instance(gpu=5)
    node.line(94, "Contained: DED CBC (0x2, 0x1). physAddr: 0x0012345678 RST: No, D-RST: Yes", instance)
    assert node.view("gpu0").verdict is Verdict.NO_NEW_JOBS


def test_faults_of_programs_on_an_instance_are_no_neighbours() -> None:
    node = Node()
    node.event(31, Instance(gpu=1))
    node.line(13, instance=Instance(gpu=2))
    handlings = {name: node.view(name).handling for name in ("gpu0", "gpu0/gi1", "gpu0/gi2")}
    assert handlings == {
        "gpu0": Handling.NONE,
        "gpu0/gi1": Handling.RESTART_JOB,
        "gpu0/gi2": Handling.RESTART_JOB,
    }


@pytest.mark.parametrize("xid", [79, 64, 119, 62])
def test_hardware_isolates_at_once_whatever_the_action_is(xid: int) -> None:
    node = Node()
    node.event(xid)
    assert node.view("gpu0").verdict is Verdict.ISOLATE


def test_a_double_bit_error_whose_row_is_replaced_takes_no_new_jobs() -> None:
    node = Node()
    node.event(48)
    node.event(63)
    view = node.view("gpu0")
    assert (view.verdict, view.handling) == (Verdict.NO_NEW_JOBS, Handling.RESET_WHEN_IDLE)
