"""What ports that are down mean for the chips of a 950."""

from pathlib import Path

import pytest

from nodeagent.core.model import Level
from nodeagent.drivers.ascend.active_codes import SILENT_NS, UnifiedBusPorts, ethernet_ports
from tests.drivers.ascend.conftest import Emulate
from tests.drivers.ascend.judged import judged
from tests.drivers.worker_specs import ascend_spec

UB_DOWN, UBOE_DOWN, NETWORK_DOWN = "81B18603", "81078607", "81078603"
HERE, EVERYWHERE = "020001002", "020000002"
ONE_DOWN, BOTH_DOWN = "110000002", "110001024"


class Clock:
    """Each reading is a millisecond after the one before."""

    def __init__(self, *devices: str) -> None:
        self.ports = UnifiedBusPorts()
        self.now_ns = 10**12
        self.ports.expect(devices, self.now_ns)

    def read(self, device: str, *codes: str) -> set[str] | None:
        self.now_ns += 1_000_000
        return self.ports.derive(device, codes, self.now_ns)


def test_a_port_down_on_one_chip_separates_that_chip() -> None:
    clock = Clock("npu0", "npu1")
    clock.read("npu1")
    assert clock.read("npu0", UB_DOWN) is None
    assert clock.read("npu1") == set()
    assert clock.read("npu0", UB_DOWN) == {HERE}


def test_ports_down_on_every_chip_have_their_cause_elsewhere() -> None:
    clock = Clock("npu0", "npu1")
    clock.read("npu0")
    clock.read("npu1")
    clock.read("npu0", UB_DOWN)
    assert clock.read("npu1", UB_DOWN) is None
    assert clock.read("npu0", UB_DOWN) == {EVERYWHERE}
    assert clock.read("npu1", UB_DOWN) == {EVERYWHERE}


def test_nothing_follows_before_the_other_chips_were_read() -> None:
    clock = Clock("npu0", "npu1")
    clock.read("npu1")
    assert clock.read("npu0", UB_DOWN) is None
    assert clock.read("npu0", UB_DOWN) is None


def test_a_chip_that_does_not_answer_is_not_waited_for() -> None:
    clock = Clock("npu0", "npu1")
    clock.read("npu1")
    clock.read("npu0", UB_DOWN)
    clock.now_ns += SILENT_NS
    assert clock.read("npu0", UB_DOWN) == {HERE}


def test_of_a_chip_that_does_not_answer_the_last_word_counts() -> None:
    clock = Clock("npu0", "npu1")
    clock.read("npu0")
    clock.read("npu1", UB_DOWN)
    clock.read("npu0", UB_DOWN)
    clock.now_ns += SILENT_NS
    assert clock.read("npu0", UB_DOWN) == {EVERYWHERE}


def test_at_the_start_the_first_chip_waits_for_the_others() -> None:
    clock = Clock("npu0", "npu1")
    assert clock.read("npu0", UB_DOWN) is None
    clock.read("npu1", UB_DOWN)
    assert clock.read("npu0", UB_DOWN) == {EVERYWHERE}


def test_it_is_over_with_the_port() -> None:
    clock = Clock("npu0", "npu1")
    clock.read("npu0", UB_DOWN)
    clock.read("npu1")
    assert clock.read("npu0", UB_DOWN) == {HERE}
    assert clock.read("npu0") == set()


@pytest.mark.parametrize(
    ("active", "listed_ports", "meaning"),
    [
        ((), 0, set()),
        ((NETWORK_DOWN,), 0, set()),
        ((UBOE_DOWN,), 0, {ONE_DOWN}),
        ((UBOE_DOWN,), 1, {ONE_DOWN}),
        ((UBOE_DOWN,), 2, {BOTH_DOWN}),
        ((UBOE_DOWN, NETWORK_DOWN), 1, {BOTH_DOWN}),
        ((), 2, set()),
    ],
)
def test_ethernet_ports_cut_a_chip_off_once_both_are_down(
    active: tuple[str, ...], listed_ports: int, meaning: set[str]
) -> None:
    assert ethernet_ports(active, listed_ports) == meaning


async def test_the_chips_of_a_950_are_judged_by_their_ports(emulate: Emulate, tmp_path: Path) -> None:
    node = emulate("4x950")
    async with judged(ascend_spec(node.dcmi, tmp_path / "sys", poll_interval_s=0.05)) as stage:
        node.raise_code("npu1", int(UB_DOWN, 16))
        raised = await stage.raised("npu1", HERE)
        assert raised.condition_level is Level.SEPARATE_NPU
        for device in ("npu0", "npu2", "npu3"):
            node.raise_code(device, int(UB_DOWN, 16))
        raised = await stage.raised("npu1", EVERYWHERE)
        assert raised.condition_level is Level.SUB_HEALTH
        await stage.cleared("npu1", HERE)
        for device in node.names():
            node.clear_codes(device)
        await stage.cleared("npu1", EVERYWHERE)


async def test_both_ethernet_ports_down_let_no_new_job_onto_a_950(emulate: Emulate, tmp_path: Path) -> None:
    node = emulate("4x950")
    async with judged(ascend_spec(node.dcmi, tmp_path / "sys", poll_interval_s=0.05)) as stage:
        node.raise_code("npu1", int(UBOE_DOWN, 16))
        assert (await stage.raised("npu1", ONE_DOWN)).condition_level is Level.SUB_HEALTH
        node.raise_code("npu1", int(NETWORK_DOWN, 16))
        assert (await stage.raised("npu1", BOTH_DOWN)).condition_level is Level.PRE_SEPARATE_NPU
        await stage.cleared("npu1", ONE_DOWN)


async def test_a_process_that_begins_later_counts_the_ethernet_ports_of_a_950_too(
    emulate: Emulate, tmp_path: Path
) -> None:
    node = emulate("4x950")
    for port in (0, 1):
        node.raise_code("npu1", int(UBOE_DOWN, 16), part=port)
    node.raise_code("npu2", int(UBOE_DOWN, 16), part=1)
    async with judged(ascend_spec(node.dcmi, tmp_path / "sys", poll_interval_s=0.05)) as stage:
        assert (await stage.raised("npu1", BOTH_DOWN)).condition_level is Level.PRE_SEPARATE_NPU
        assert (await stage.raised("npu2", ONE_DOWN)).condition_level is Level.SUB_HEALTH
        node.clear_code("npu1", int(UBOE_DOWN, 16), part=0)
        await stage.cleared("npu1", BOTH_DOWN)
        await stage.raised("npu1", ONE_DOWN)
        assert stage.kinds_of("npu1", UBOE_DOWN) == ["raised"]
        node.clear_code("npu1", int(UBOE_DOWN, 16), part=1)
        await stage.cleared("npu1", ONE_DOWN)
        await stage.cleared("npu1", UBOE_DOWN)


async def test_an_older_chip_has_no_such_ports(emulate: Emulate, tmp_path: Path) -> None:
    node = emulate("4x910B")
    async with judged(ascend_spec(node.dcmi, tmp_path / "sys", poll_interval_s=0.05)) as stage:
        node.raise_code("npu1", int(UB_DOWN, 16))
        await stage.raised("npu1", UB_DOWN)
        await stage.polled("npu1", 1)
        assert set(stage.open_on("npu1")) == {UB_DOWN}
