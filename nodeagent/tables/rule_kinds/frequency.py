"""``[[frequency]]``: a fault that comes again and again is promoted."""

from typing import Annotated

from msgspec import Meta, field

from nodeagent.core.catalog.catalog import FrequencyRule
from nodeagent.core.catalog.settings import SECOND_NS
from nodeagent.core.model import CountedBy, Kind, Level
from nodeagent.tables.levels import objection
from nodeagent.tables.rule_kinds.rule_kind import Objections, RuleSection, codes_of_list
from nodeagent.tables.sections.schema import (
    Codes,
    KindOfCode,
    ReleaseWindow,
    RuleForm,
    TimeWindow,
    UpToOneHour,
    UpToTenMinutes,
)
from nodeagent.tables.texts import duration

_RELEASE_LEAST_NS = 60 * SECOND_NS

_COUNTED = {
    CountedBy.DEVICE: "times in",
    CountedBy.JOB: "times by one job in",
    CountedBy.PLACE: "jobs that failed at one and the same place of the device in",
}


class FrequencyForm(RuleForm, frozen=True, kw_only=True):
    codes: Codes
    times: Annotated[int, Meta(ge=1, le=100, description="a whole number from 1 to 100")]
    time_window_ns: TimeWindow = field(name="time_window")
    level: Level
    release_ns: ReleaseWindow | None = field(default=None, name="release_time_window")
    burst_ns: UpToOneHour | None = field(default=None, name="burst")
    correlation_ns: UpToTenMinutes = field(default=30 * SECOND_NS, name="correlation")
    at_least: Level | None = None
    in_use: bool = False
    counted_by: CountedBy = CountedBy.DEVICE
    kind: KindOfCode | None = None


def objections(form: FrequencyForm) -> Objections:
    kind = form.kind or Kind.CHIP
    if reason := objection(form.level, kind, by_frequency=True):
        yield "level", reason
    if form.at_least is not None and (reason := objection(form.at_least, kind)):
        yield "at_least", reason
    on_chips = kind in (Kind.CHIP, Kind.PUBLIC)
    if form.release_ns is None and on_chips and form.level is not Level.MANUALLY_SEPARATE_NPU:
        reason = "missing; if only a person releases, the level must be ManuallySeparateNPU"
        yield "release_time_window", reason
    if form.release_ns is not None and form.release_ns < _RELEASE_LEAST_NS:
        yield "release_time_window", 'must be "60s" or more, or "0s" for never'
    if form.counted_by is not CountedBy.DEVICE and kind is not Kind.CHIP:
        yield "counted_by", f'"{form.counted_by}": only chips have jobs; "device" is right for kind {kind}'
    if form.counted_by is CountedBy.PLACE and "*" in form.codes:
        yield "counted_by", '"place": name the codes whose patterns have a group "place", in place of "*"'
    for code in form.codes:
        if code.endswith("*") and code != "*":
            reason = f'"{code}": codes are counted one by one; name them, or write "*" for every one'
            yield "codes", reason


def text(rule: FrequencyRule) -> str:
    released = (
        "until a person releases it"
        if rule.release_ns is None
        else f"released once it stayed away for {duration(rule.release_ns)}"
    )
    least = "" if rule.at_least is None else f", counted from {rule.at_least} on"
    used = ", counted while it is in use" if rule.in_use else ""
    times = f"{rule.times} {_COUNTED[rule.counted_by]} {duration(rule.time_window_ns)}{least}{used}"
    return f"{times}: {rule.level}, {released}"


SECTION = RuleSection(
    key="frequency",
    in_catalog="frequency",
    form=FrequencyForm,
    rule=FrequencyRule,
    text=text,
    codes=codes_of_list,
    objections=objections,
    first_counts=True,
)
