"""The keys of a job's policy: their names, values and ranges. A table; ``policy`` reads the sources.

The daemon checks a site's values for jobs by it, so each key describes its right values in words.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from nodeagent.job import model
from nodeagent.job.model import HangMode, SubHealthyStrategy

_UNITS_S: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)")
_WHOLE: Final = re.compile(r"-?\d{1,9}")


@dataclass(frozen=True, slots=True)
class ValueForm:
    """``read`` gives the value of a text, or raises ``ValueError``; ``right`` describes the right values,
    ``shown`` stands for one in a usage line.

    ``capped`` gives the milder of a value and a site's limit; None where a limit makes no sense.
    """

    right: str
    read: Callable[[str], Any]
    capped: Callable[[Any, Any], Any] | None = None
    shown: str = "VALUE"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyKey:
    """``name`` is the key in files and at the site; the flag is ``--name``, the variable
    ``NODEAGENT_JOB_NAME``. ``field`` is the policy's. ``what`` is what it does, for help. ``annotations``:
    other names that it has, each with a form of its own.
    """

    name: str
    field: str
    form: ValueForm
    what: str
    annotations: Mapping[str, ValueForm] = dataclasses.field(default_factory=dict)

    @property
    def variable(self) -> str:
        return model.POLICY_PREFIX + self.name.upper().replace("-", "_")

    @property
    def flag(self) -> str:
        return f"--{self.name}"


def whole(low: int, high: int) -> ValueForm:
    def read(text: str) -> int:
        if not _WHOLE.fullmatch(text) or not low <= int(text) <= high:
            raise ValueError
        return int(text)

    return ValueForm(f"a whole number from {low} to {high}", read, min, "N")


def duration(low: str, high: str) -> ValueForm:
    def read(text: str) -> float:
        seconds = _seconds(text)
        if seconds is None or not _need(low) <= seconds <= _need(high):
            raise ValueError
        return seconds

    return ValueForm(f"a time from {low} to {high}, as 90s, 5m or 2h", read, min, "TIME")


def choice(*allowed: str | Enum, capped: Callable[[Any, Any], Any] | None = None) -> ValueForm:
    """The members of an enum are given by their values."""
    by_text = {str(each.value) if isinstance(each, Enum) else each: each for each in allowed}

    def read(text: str) -> str | Enum:
        if text not in by_text:
            raise ValueError
        return by_text[text]

    return ValueForm("one of " + ", ".join(by_text), read, capped, "|".join(by_text))


def _read_yes_no(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def choices(*allowed: str) -> ValueForm:
    def read(text: str) -> str:
        if not all(each.strip() in allowed for each in text.split(",")):
            raise ValueError
        return text

    return ValueForm("one or several of " + ", ".join(allowed) + ", with commas between them", read)


def _read_paths(text: str) -> tuple[str, ...]:
    paths = tuple(each.strip() for each in text.split(",") if each.strip())
    if not paths or not all(each.startswith("/") for each in paths):
        raise ValueError
    return paths


PATHS: Final = ValueForm("absolute paths, with commas between them", _read_paths, shown="PATH")


def minutes(low: int, high: int) -> ValueForm:
    numbers = whole(low, high)
    return ValueForm(f"{numbers.right} (minutes)", lambda text: numbers.read(text) * 60.0)


def _milder(value: HangMode, limit: HangMode) -> HangMode:
    order = list(HangMode)
    return min(value, limit, key=order.index)


YES_NO: Final = ValueForm("true or false", _read_yes_no, lambda value, limit: value and limit)

_HANG: Final = choice(*HangMode, capped=_milder)
_HANG_RETRY: Final = ValueForm(
    "true or false", lambda text: HangMode.RESTART if _read_yes_no(text) else HangMode.NOTIFY
)

# Ascend/mind-cluster, component/ascend-for-volcano/common/util/type.go, SubHealthyIgnore and its like; the
# default is ignore: docs/en/scheduling/api/volcano.md.
_SUB_HEALTHY: Final = choice(*SubHealthyStrategy)

JOB_RETRY_NUM: Final = "fault-tolerance/job-retry-num"
UNCONDITIONAL_RETRY: Final = "fault-tolerance/job-unconditional-retry"
HANG_RETRY: Final = "fault-tolerance/hang-retry"
POD_RETRY_NUM: Final = "fault-tolerance/pod-retry-num"
FAULT_RETRY_TIMES: Final = "fault-retry-times"
SUB_HEALTHY_STRATEGY: Final = "subHealthyStrategy"
RECOVER_STRATEGY: Final = "recover-strategy"

HANG_DETECT_TIME: Final = model.HANG_DETECT_TIME

KEYS: Final[tuple[PolicyKey, ...]] = (
    PolicyKey(
        name="kind",
        what="kind of the job; only training is stopped for a hang",
        field="kind",
        form=choice("training", "inference", "notebook", "other"),
    ),
    PolicyKey(
        name="in-place",
        what="stop the command, and run it again, when its chip is repaired",
        field="in_place",
        form=YES_NO,
    ),
    PolicyKey(
        name="yields",
        what="also for a chip of another job that is reset with one of this job",
        field="yields",
        form=YES_NO,
    ),
    # 1 to 128: ModelArts, "Training Job Restart Upon Suspension".
    PolicyKey(
        name="placements",
        what="how many times the job may run elsewhere because of a fault",
        field="placements",
        form=whole(1, 128),
        annotations={JOB_RETRY_NUM: whole(1, 128)},
    ),
    PolicyKey(
        name="unconditional",
        what="run the job elsewhere also when it fails without a known fault",
        field="unconditional",
        form=YES_NO,
        annotations={UNCONDITIONAL_RETRY: YES_NO},
    ),
    PolicyKey(
        name="refill",
        what="give all placements back when the job makes progress",
        field="refill",
        form=YES_NO,
    ),
    PolicyKey(
        name="in-place-retries",
        what="how many times in a row to run it again here after a failure",
        field="in_place_retries",
        form=whole(0, 128),
    ),
    PolicyKey(
        name="error-row",
        what="after how many failures with the same unknown error, without progress, the job is given up",
        field="error_row",
        form=whole(2, 128),
    ),
    # pod-retry-num, the number of pod reschedules: ModelArts, "Recovering a Training Job". The page gives it
    # no range of its own: that of the job's retries.
    PolicyKey(
        name="node-replacements",
        what="job step: how many nodes may be replaced by spares, in all",
        field="node_replacements",
        form=whole(0, 128),
        annotations={POD_RETRY_NUM: whole(1, 128)},
    ),
    PolicyKey(
        name="hang",
        what="what to do when a run hangs",
        field="hang",
        form=_HANG,
        annotations={HANG_RETRY: _HANG_RETRY},
    ),
    # At most three in a row: the same page.
    PolicyKey(
        name="hang-row",
        what="how many times in a row to restart it because of a hang",
        field="hang_row",
        form=whole(1, 3),
    ),
    PolicyKey(
        name="hang-time",
        what="how long a run may stand still before it counts as hung",
        field="hang_time_s",
        form=duration("10s", "12h"),
    ),
    PolicyKey(
        name="start-time",
        what="how long a run may take to its second step (default: learnt)",
        field="start_time_s",
        form=duration("10s", "24h"),
    ),
    PolicyKey(
        name="grace",
        what="time between the signal to end and the kill",
        field="grace_s",
        form=duration("0s", "1h"),
    ),
    PolicyKey(
        name="heal-timeout",
        what="how long the command waits until it may run",
        field="heal_timeout_s",
        form=duration("1s", "24h"),
    ),
    PolicyKey(
        name="verdict-wait",
        what="how long to wait after a failure for a fault that explains it",
        field="verdict_wait_s",
        form=duration("0s", "5m"),
    ),
    PolicyKey(
        name="blame",
        what="how long after a fault a failure is still explained by it",
        field="blame_s",
        form=duration("0s", "10m"),
    ),
    PolicyKey(
        name="sub-health",
        what="when a chip of the job becomes sub-healthy: stay, or leave at the next checkpoint, or now",
        field="sub_health",
        form=choice(SubHealthyStrategy.IGNORE, SubHealthyStrategy.GRACE_EXIT, SubHealthyStrategy.FORCE_EXIT),
        annotations={SUB_HEALTHY_STRATEGY: _SUB_HEALTHY},
    ),
    PolicyKey(
        name="need-daemon",
        what="do not run while the daemon does not answer",
        field="need_daemon",
        form=YES_NO,
    ),
    PolicyKey(
        name="need-path",
        what="storage that has to answer before each run",
        field="need_paths",
        form=PATHS,
    ),
    PolicyKey(
        name="path-time",
        what="how long a path of need-path may take to answer",
        field="path_time_s",
        form=duration("1s", "5m"),
    ),
    # 50 s as in NVRx: fault_tolerance/config.py, gpu_memory_reclaim_timeout.
    PolicyKey(
        name="memory-wait",
        what="how long to wait until the memory of the chips is free",
        field="memory_wait_s",
        form=duration("0s", "10m"),
    ),
)

BY_NAME: Final[Mapping[str, PolicyKey]] = {each.name: each for each in KEYS}
BY_VARIABLE: Final[Mapping[str, PolicyKey]] = {each.variable: each for each in KEYS}
BY_ANNOTATION: Final[Mapping[str, PolicyKey]] = {name: each for each in KEYS for name in each.annotations}

# Ascend/mind-cluster, docs/en/scheduling/api/volcano.md: 0-100.
FAULT_RETRY_FORM: Final = whole(0, 100)
# ModelArts, "Detecting Training Job Suspension": 10 to 720 minutes.
HANG_DETECT_FORM: Final = minutes(10, 720)

NEED_PLACEMENTS: Final = frozenset({UNCONDITIONAL_RETRY, HANG_RETRY, POD_RETRY_NUM})
"""Annotations that are right only next to ``job-retry-num``: ModelArts, "Recovering a Training Job"."""

REPORTED: Final = (SUB_HEALTHY_STRATEGY, RECOVER_STRATEGY)
"""Annotations that schedulers get as the strategy of the job."""

STRATEGIES: Final[Mapping[str, ValueForm]] = {
    # Ascend/mind-cluster, component/ascend-common/api/consts.go, RecoverStrategy and its like; combined by
    # commas:
    # docs/en/scheduling/usage/resumable_training/04_configuring_fault_handling_policies.md.
    RECOVER_STRATEGY: choices("retry", "recover", "recover-in-place", "elastic-training", "dump", "exit"),
}


def named(name: str) -> PolicyKey | None:
    """The key of that name; both ``in-place`` and ``in_place`` are its name."""
    return BY_NAME.get(name.replace("_", "-"))


def problem(name: str, text: str, *, as_limit: bool = False) -> str | None:
    """What is wrong with a site's value for a job, or its limit; None: nothing."""
    key = named(name)
    if key is None:
        return f"{name}: no such key; the keys are {', '.join(BY_NAME)}"
    if as_limit and key.form.capped is None:
        return f"{name}: this key has no limit"
    try:
        key.form.read(text)
    except ValueError:
        return f"{name}: {key.form.right}, not {text!r}"
    return None


def _seconds(text: str) -> float | None:
    found = _DURATION.fullmatch(text)
    return float(found[1]) * _UNITS_S[found[2]] if found else None


def _need(text: str) -> float:
    seconds = _seconds(text)
    assert seconds is not None, text
    return seconds
