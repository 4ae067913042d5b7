"""What tests of the core say often, in short: a small catalog, signals, a run, what was emitted."""

from collections.abc import Iterable, Mapping
from typing import Any

from nodeagent.core.catalog.catalog import (
    Catalog,
    ClearOn,
    CommonCauseRule,
    CounterRule,
    DurationRule,
    FrequencyRule,
    RelationRule,
    Row,
    ThresholdRule,
)
from nodeagent.core.catalog.codes import canonical
from nodeagent.core.catalog.settings import SECOND_NS, Mode, Settings
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    ActiveCode,
    ActiveSet,
    Assertion,
    CatalogChanged,
    Condition,
    CounterMark,
    DeviceSeen,
    DeviceView,
    Edge,
    Event,
    EventKind,
    Handling,
    Holder,
    Input,
    Kind,
    Level,
    Operator,
    ProcessesListed,
    Signal,
    SourceBack,
    SourceLost,
    Started,
    Tick,
    Verdict,
)
from nodeagent.tables.sections.sources import DEFAULT_TRAITS

HOUR_S = 3600
DAY_S = 24 * HOUR_S

DRIVER_SAYS = ClearOn(recover=True, reset=True, reboot=True)

LINK_DOWN = "81078603"
HBM = "80E18005"


def ns(seconds: float) -> int:
    return round(seconds * SECOND_NS)


def row(code: str, level: Level = Level.NOT_HANDLE, **words: Any) -> Row:
    vendor = "nvidia" if code.startswith("XID") else "ascend"
    words = {"kind": Kind.CHIP, "vendor": vendor, "name": f"fault {code}", "clear_on": DRIVER_SAYS, **words}
    return Row(code=code, level=level, **words)


def repeat(code: str, times: int = 3, window_s: float = DAY_S, **words: Any) -> FrequencyRule:
    """A frequency rule on one code; without correlation unless said otherwise."""
    words = {"level": Level.MANUALLY_SEPARATE_NPU, "correlation_ns": 0, "id": f"repeat-{code}", **words}
    return FrequencyRule(codes=(code,), times=times, time_window_ns=ns(window_s), **words)


def lasting(code: str = LINK_DOWN, fault_s: float = 20, recover_s: float = 60, **words: Any) -> DurationRule:
    words = {"level": Level.PRE_SEPARATE_NPU, "id": f"lasting-{code}", **words}
    return DurationRule(
        codes=(code,), fault_timeout_ns=ns(fault_s), recover_timeout_ns=ns(recover_s), **words
    )


def related(code: str, *with_codes: str, within_s: float = 180, **words: Any) -> RelationRule:
    """A relation rule on one device, absorbing unless said otherwise; its id is ``THEN-CODE``."""
    words = {"same": "device", "then": "absorb", **words}
    words = {"id": f"{words['then']}-{code}", **words}
    return RelationRule(code=code, with_codes=with_codes, within_ns=ns(within_s), **words)


def hot(code: str = "HOT", for_s: float = 60, **words: Any) -> ThresholdRule:
    """Above 90 for a minute, over below 85."""
    words = {"id": f"above-{code}", "metric": "celsius", "above": 90.0, "clear_below": 85.0, **words}
    return ThresholdRule(code=code, for_ns=ns(for_s), **words)


def rising(code: str = "STORM", increase: int = 100, window_s: float = HOUR_S, **words: Any) -> CounterRule:
    words = {"id": f"rise-{code}", "metric": "corrected_total", **words}
    return CounterRule(code=code, increase=increase, time_window_ns=ns(window_s), **words)


def common(code: str, *codes: str, devices: int = 2, within_s: float = 0, **words: Any) -> CommonCauseRule:
    """A rule on faults that several devices have at once; its id is ``common-CODE``."""
    words = {"id": f"common-{code}", **words}
    return CommonCauseRule(code=code, codes=codes, devices=devices, within_ns=ns(within_s), **words)


def catalog(
    *rows: Row,
    frequency: Iterable[FrequencyRule] = (),
    duration: Iterable[DurationRule] = (),
    relation: Iterable[RelationRule] = (),
    threshold: Iterable[ThresholdRule] = (),
    counter: Iterable[CounterRule] = (),
    common_cause: Iterable[CommonCauseRule] = (),
    digest: str = "first",
    **settings: Any,
) -> Catalog:
    """The rows given, besides one of each chip level under its own name."""
    by_level = {level.value: row(level.value, level) for level in CHIP_LEVELS}
    return Catalog(
        digest=digest,
        rows={canonical(one.code): one for one in (*by_level.values(), *rows)},
        frequency=tuple(frequency),
        duration=tuple(duration),
        relation=tuple(relation),
        threshold=tuple(threshold),
        counter=tuple(counter),
        common_cause=tuple(common_cause),
        sources=DEFAULT_TRAITS,
        settings=Settings(**settings),
    )


CHIP_LEVELS = (
    Level.NOT_HANDLE,
    Level.SUB_HEALTH,
    Level.RESTART_REQUEST,
    Level.RESTART_BUSINESS,
    Level.FREE_RESTART_NPU,
    Level.RESTART_NPU,
    Level.PRE_SEPARATE_NPU,
    Level.SEPARATE_NPU,
)

GRACEFUL: dict[str, Any] = {"mode": Mode.GRACEFUL}


def signal(code: str, assertion: str = "occur", device: str = "npu0", **words: Any) -> Signal:
    words = {"source": "ascend", **words}
    return Signal(device=device, code=code, assertion=Assertion(assertion), **words)


def xid(code: str, device: str = "0000:3b:00.0", **words: Any) -> Signal:
    return signal(code, "once", device, **{"source": "kmsg", **words})


def active(
    *codes: str, device: str = "npu0", begun_s: float, complete: bool = True, **words: Any
) -> ActiveSet:
    words = {"source": "ascend", **words}
    return ActiveSet(
        device=device,
        codes=tuple(ActiveCode(code=code) for code in codes),
        begun_ns=ns(begun_s),
        complete=complete,
        **words,
    )


def edge(above: bool, device: str = "npu0", rule: str = "above-HOT", value: float = 95.0) -> Edge:
    return Edge(source="ascend", device=device, rule=rule, above=above, value=value)


def mark(value: int, device: str = "npu0", metric: str = "corrected_total") -> CounterMark:
    return CounterMark(source="ascend", device=device, metric=metric, value=value)


def seen(device: str = "npu0", identity: str = "", pci: str = "", **words: Any) -> DeviceSeen:
    words = {"source": "ascend", "kind": Kind.CHIP, "vendor": "ascend", **words}
    attributes = {**({"pci": pci} if pci else {}), **words.pop("attributes", {})}
    return DeviceSeen(device=device, identity=identity, attributes=attributes, **words)


def held(device: str, job: str | None) -> ProcessesListed:
    """``job`` None: nobody holds the device."""
    holders = () if job is None else (Holder(pid=7, start_time=1, command="python", job=job),)
    return ProcessesListed(device=device, holders=holders)


def order(what: str, device: str = "npu0", who: str = "uid:1000", **words: Any) -> Operator:
    """In the caller's own name unless said otherwise."""
    words = {"owner": who, "reason": "bench", **words}
    return Operator(who=who, what=what, device=device, **words)


def lost(source: str = "ascend", device: str = "", **words: Any) -> SourceLost:
    return SourceLost(source=source, reason="no answer", device=device, **words)


def back(source: str = "ascend", device: str = "") -> SourceBack:
    return SourceBack(source=source, device=device)


def begin(*catalogs: Catalog, chips: int = 1, boot: str = "boot-1") -> Engine:
    """An engine under the first catalog, started at 0 s, with chips npu0.. that are observed."""
    engine = Engine({one.digest: one for one in catalogs})
    engine.step(0, CatalogChanged(digest=catalogs[0].digest))
    engine.step(0, Started(boot_id=boot, version="1"))
    for index in range(chips):
        engine.step(0, seen(f"npu{index}", f"die{index}", f"0000:0{index}:00.0"))
    engine.step(0, back())
    return engine


def run(engine: Engine, steps: Iterable[tuple[float, Input]]) -> list[Event]:
    """Step inputs at these seconds; every event meanwhile."""
    events: list[Event] = []
    for at_s, given in steps:
        events.extend(engine.step(ns(at_s), given).events)
    return events


def wait(engine: Engine, until_s: float, extra_ns: int = 0) -> list[Event]:
    """Only let time pass."""
    return list(engine.step(ns(until_s) + extra_ns, Tick()).events)


def emitted(events: Iterable[Event]) -> list[tuple[str, str, str]]:
    """Of each event its kind, device and code."""
    return [(event.kind.value, event.device, event.code) for event in events]


def of(events: Iterable[Event], kind: EventKind) -> list[Event]:
    return [event for event in events if event.kind is kind]


def stands(engine: Engine, device: str = "npu0") -> tuple[Level, Verdict, Handling]:
    """Level, verdict and handling of the device as they are now."""
    view = device_view(engine, device)
    return view.level, view.verdict, view.handling


def device_view(engine: Engine, device: str = "npu0") -> DeviceView:
    (view,) = [view for view in engine.view().devices if view.name == device]
    return view


def open_codes(engine: Engine) -> list[tuple[str, str]]:
    """Pairs (device id, code) of everything open."""
    return [(condition.device_id, condition.code) for condition in engine.view().conditions]


def condition(engine: Engine, code: str) -> Condition:
    (found,) = [one for one in engine.view().conditions if one.code == code]
    return found


def verdicts(engine: Engine) -> Mapping[str, tuple[Verdict, Handling]]:
    """By device id."""
    return {view.id: (view.verdict, view.handling) for view in engine.view().devices}
