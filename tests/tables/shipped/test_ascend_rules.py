"""What the shipped rules make of Ascend faults that come together: memory and cores, links and retries."""

from pathlib import Path

import pytest

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.model import Kind, Level
from tests.core.build import begin, condition, held, open_codes, run, signal
from tests.shipped import shipped_catalog

REPOSITORY = Path(__file__).parents[3]

HBM, AI_CORE, VECTOR_CORE = "80E01801", "80C98009", "80CB8009"
LINK_DOWN, RETRIED, RETRY_FAILED = "81078603", "8C1F8609", "8C1F860B"
SWITCH_LINK_DOWN = "[0x08520003,na,L2,na]"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return shipped_catalog()


@pytest.mark.parametrize("core", [AI_CORE, VECTOR_CORE])
@pytest.mark.parametrize("first", ["memory", "core"])
def test_a_core_that_read_damaged_memory_is_no_fault_of_its_own(
    catalog: Catalog, core: str, first: str
) -> None:
    engine = begin(catalog)
    codes = [HBM, core] if first == "memory" else [core, HBM]
    run(engine, [(1, signal(codes[0])), (6, signal(codes[1]))])
    assert open_codes(engine) == [("die0", HBM)]


@pytest.mark.parametrize("core", [AI_CORE, VECTOR_CORE])
def test_a_core_that_fails_later_than_five_seconds_is_a_fault_of_its_own(catalog: Catalog, core: str) -> None:
    engine = begin(catalog)
    run(engine, [(1, signal(HBM)), (6.1, signal(core))])
    assert [code for _, code in open_codes(engine)] == [HBM, core]


def test_a_core_of_another_chip_is_not_explained_by_this_memory(catalog: Catalog) -> None:
    engine = begin(catalog, chips=2)
    run(engine, [(1, signal(HBM)), (2, signal(AI_CORE, device="npu1"))])
    assert open_codes(engine) == [("die0", HBM), ("die1", AI_CORE)]


@pytest.mark.parametrize(
    ("company", "level"),
    [
        ((), Level.NOT_HANDLE),
        ((RETRIED,), Level.SUB_HEALTH),
        ((RETRY_FAILED,), Level.SEPARATE_NPU),
        (("8C1F8608",), Level.SEPARATE_NPU),
        (("4C1F8608",), Level.SEPARATE_NPU),
        ((RETRIED, RETRY_FAILED), Level.SEPARATE_NPU),
    ],
)
def test_a_link_that_went_down_is_as_grave_as_what_communication_made_of_it(
    catalog: Catalog, company: tuple[str, ...], level: Level
) -> None:
    engine = begin(catalog)
    run(engine, [(1, signal(LINK_DOWN)), *((2 + n, signal(code)) for n, code in enumerate(company))])
    assert condition(engine, LINK_DOWN).level is level


def test_a_retry_on_another_chip_of_the_job_counts_and_one_of_another_job_does_not(catalog: Catalog) -> None:
    engine = begin(catalog, chips=3)
    jobs = [(0.5, held("npu0", "slurm:1")), (0.5, held("npu1", "slurm:1")), (0.5, held("npu2", "slurm:2"))]
    down = [(1, signal(LINK_DOWN)), (1, signal(LINK_DOWN, device="npu2"))]
    run(engine, [*jobs, *down, (2, signal(RETRY_FAILED, device="npu1"))])
    levels = {each.device_id: each.level for each in engine.view().conditions if each.code == LINK_DOWN}
    assert levels == {"die0": Level.SEPARATE_NPU, "die2": Level.NOT_HANDLE}


def test_a_retry_that_fails_long_after_the_link_went_down_has_another_cause(catalog: Catalog) -> None:
    engine = begin(catalog)
    run(engine, [(1, signal(LINK_DOWN)), (302, signal(RETRY_FAILED))])
    assert condition(engine, LINK_DOWN).level is Level.PRE_SEPARATE_NPU


def test_a_switch_link_is_grave_once_communication_over_it_failed(catalog: Catalog) -> None:
    engine = begin(catalog)
    down = signal(SWITCH_LINK_DOWN, device="ub3/17", source="unifiedbus")
    run(engine, [(1, down)])
    assert condition(engine, SWITCH_LINK_DOWN).level is Level.NOT_HANDLE
    run(engine, [(100, signal(RETRY_FAILED))])
    assert condition(engine, SWITCH_LINK_DOWN).level is Level.SEPARATE_FAULT
    assert next(view for view in engine.view().devices if view.name == "ub3/17").kind is Kind.UNIFIEDBUS
