"""A chip that drops off its bus, by the shipped tables: its driver says the same while it boots."""

import pytest

from nodeagent.core.engine import Engine
from nodeagent.core.model import Claims, Event, EventKind, Input, Verdict
from tests.core.build import HOUR_S, begin, held, of, run, signal, stands, wait
from tests.shipped import shipped_catalog

DROPPED = "40F84E00"
BOOT_S = 90


def drops(engine: Engine, hours: tuple[int, ...], *chips: str) -> list[Event]:
    """Each chip is away for as long as a boot takes, at each of these hours."""
    steps: list[tuple[float, Input]] = []
    for hour in hours:
        steps += [(hour * HOUR_S, signal(DROPPED, device=chip)) for chip in chips]
        steps += [(hour * HOUR_S + BOOT_S, signal(DROPPED, "recover", chip)) for chip in chips]
    return run(engine, steps)


def test_resets_of_chips_that_nobody_uses_take_none_of_them_out_of_service() -> None:
    engine = begin(shipped_catalog(), chips=8)
    chips = tuple(f"npu{index}" for index in range(8))
    run(engine, [(1, held(chip, None)) for chip in chips])
    events = drops(engine, (1, 5, 9, 13, 17, 21), *chips)
    assert of(events, EventKind.PROMOTED) == []
    assert {stands(engine, chip)[1] for chip in chips} == {Verdict.ALLOW}


def test_a_chip_that_drops_under_its_jobs_is_out_until_it_stayed_for_two_days() -> None:
    engine = begin(shipped_catalog())
    run(engine, [(1, held("npu0", "job-a"))])
    events = drops(engine, (1, 9, 17), "npu0")
    assert len(of(events, EventKind.PROMOTED)) == 1
    released_s = 17 * HOUR_S + BOOT_S + 48 * HOUR_S
    wait(engine, released_s)
    assert stands(engine)[1] is Verdict.ISOLATE
    wait(engine, released_s, extra_ns=1)
    assert stands(engine)[1] is Verdict.ALLOW


@pytest.mark.parametrize("known", [True, False], ids=["claimed", "users unknown"])
def test_a_chip_that_may_be_in_use_is_taken_as_used(known: bool) -> None:
    engine = begin(shipped_catalog())
    if known:
        claim = Claims(device="npu0", job="slurm:1", kind="slurm", claimed=True)
        run(engine, [(1, held("npu0", None)), (2, claim)])
    assert len(of(drops(engine, (1, 9, 17), "npu0"), EventKind.PROMOTED)) == 1
