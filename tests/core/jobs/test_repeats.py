"""A fault that has come so often that its chip is about to be taken out: no run begins there meanwhile."""

from dataclasses import replace

from nodeagent.core.model import JobStage, Level
from tests.core.build import held, ns, repeat
from tests.core.jobs.place import BOTH, JOB, Place, job_catalog
from tests.core.resets.ring import BROKEN

CHIPS = ("npu0", "npu1")
CORRELATION_S = 120
"""So long a rule waits for other chips that show the same: then it is not the chip's fault."""


def healed_twice(level: Level, *, on_both: bool = False) -> Place:
    """A job on both chips. By a rule, the second time within a day brings the chip to this level."""
    rule = repeat(BROKEN, times=2, level=level, correlation_ns=ns(CORRELATION_S))
    place = Place(replace(job_catalog(), frequency=(rule,)))
    place.run(BOTH, JOB, *CHIPS)
    for _ in (1, 2):
        for chip in CHIPS:
            place.do(held(chip, JOB))
        place.wait(3600)
        place.fault()
        if on_both:
            place.fault(device="npu1")
        place.poll_all(BROKEN)
        place.stop(JOB, *CHIPS)
        place.help()
    return place


def test_it_is_held_until_the_rule_takes_effect_and_leaves_then() -> None:
    place = healed_twice(Level.MANUALLY_SEPARATE_NPU)
    assert (place.stage(), place.job().run) == (JobStage.HOLDING, 3)
    place.wait(CORRELATION_S)
    assert (place.stage(), place.job().isolated) == (JobStage.LEAVING, True)


def test_meanwhile_its_chip_takes_no_work_of_others() -> None:
    place = healed_twice(Level.MANUALLY_SEPARATE_NPU)
    assert place.verdicts() == ["NO_NEW_JOBS", "ALLOW"]
    place.wait(CORRELATION_S)
    assert place.verdicts() == ["ISOLATE", "ALLOW"]


def test_it_takes_work_again_where_all_chips_of_the_job_show_the_fault() -> None:
    assert healed_twice(Level.MANUALLY_SEPARATE_NPU, on_both=True).verdicts() == ["ALLOW", "ALLOW"]


def test_it_runs_again_at_once_where_the_rule_only_keeps_new_jobs_away() -> None:
    place = healed_twice(Level.PRE_SEPARATE_NPU)
    assert (place.stage(), place.job().run) == (JobStage.RUNNING, 3)


def test_it_runs_again_at_once_where_all_its_chips_show_the_fault() -> None:
    """Then it may be the job's, and no chip is taken out."""
    place = healed_twice(Level.MANUALLY_SEPARATE_NPU, on_both=True)
    assert (place.stage(), place.job().run) == (JobStage.RUNNING, 3)
