"""Random worlds for the property tests: a catalog where everything happens soon, inputs that meet in it."""

from hypothesis import strategies as st

from nodeagent.core.catalog.catalog import Catalog, ClearOn
from nodeagent.core.catalog.settings import SECOND_NS, PublicSettings
from nodeagent.core.model import (
    ALL_DEVICES,
    ActiveCode,
    ActiveSet,
    Affects,
    Assertion,
    BaselineSeen,
    CatalogChanged,
    DeviceGone,
    Input,
    Kind,
    Level,
    PublicFault,
    PublicFaults,
    Report,
    Started,
    TablesRejected,
    Tick,
)
from tests.core.build import (
    GRACEFUL,
    LINK_DOWN,
    active,
    back,
    catalog,
    edge,
    held,
    hot,
    lasting,
    lost,
    mark,
    ns,
    order,
    related,
    repeat,
    rising,
    row,
    seen,
    signal,
)

_ROWS = (
    row(LINK_DOWN),
    row("XID_79", Level.RESTART_NPU, clear_on=ClearOn(reset=True, reboot=True)),
    row("XID_13", Level.RESTART_BUSINESS, user_induced=True, clear_on=ClearOn(job_end=True, quiet_ns=ns(40))),
    row("XID_*", Level.SUB_HEALTH, clear_on=ClearOn(quiet_ns=ns(30))),
    row("HUNG", Level.PRE_SEPARATE_FAULT, kind=Kind.HOST, clear_on=ClearOn(quiet_ns=ns(20), operator=True)),
    row("PORT", Level.SEPARATE_FAULT, kind=Kind.LINK, affects=Affects.NODE),
    row("XID_45", Level.RESTART_BUSINESS, clear_on=ClearOn(quiet_ns=ns(30))),
    row("HOT", Level.SUB_HEALTH),
    row("STORM", Level.PRE_SEPARATE_NPU),
    row("MENDED", notice=True),
    row("SX_1", Level.SUB_HEALTH, levels={"FATAL": Level.PRE_SEPARATE_NPU}),
    row("020001001", Level.SEPARATE_NPU, kind=Kind.PUBLIC, clear_on=ClearOn(recover=True, operator=True)),
    row("110001010", Level.SUB_HEALTH, kind=Kind.PUBLIC, clear_on=ClearOn(recover=True, operator=True)),
)
FIRST: Catalog = catalog(
    *_ROWS,
    frequency=(
        repeat("XID_79", 2, 120, correlation_ns=ns(30), release_ns=ns(60), level=Level.SEPARATE_NPU),
        repeat(LINK_DOWN, 2, 300),
        repeat("*", 3, 200, at_least=Level.RESTART_REQUEST, correlation_ns=ns(5)),
    ),
    duration=(lasting(LINK_DOWN, 5, 10),),
    relation=(
        related("XID_45", "XID_*", within_s=10),
        related("RestartRequest", "RestartBusiness", within_s=5, same="job"),
        related(LINK_DOWN, "XID_79", within_s=15, then="level", level=Level.SEPARATE_NPU, same="node"),
        related("XID_13", "XID_45", within_s=10, then="level", level=Level.NOT_HANDLE),
        related("XID_99", "XID_79", "HUNG", "SX_1.Fatal", within_s=0, then="cancel", same="node"),
        related("MENDED", "SX_1", within_s=20, then="cancel"),
    ),
    threshold=(hot("HOT", 10),),
    counter=(rising("STORM", 10, 60),),
    public=PublicSettings(expire_after_ns=ns(60), expire_after_by_sender={"pingmesh": ns(10), "CCAE": 0}),
)
SECOND: Catalog = catalog(
    *_ROWS[:2],
    row("SX_1", Level.RESTART_NPU),
    row("HUNG", Level.SEPARATE_FAULT, kind=Kind.HOST, clear_on=ClearOn(operator=True)),
    frequency=(repeat("XID_79", 1, 60, level=Level.MANUALLY_SEPARATE_NPU),),
    duration=(lasting(LINK_DOWN, 2, 3, level=Level.SEPARATE_NPU),),
    relation=(related(LINK_DOWN, "XID_79", within_s=3, then="level", level=Level.SUB_HEALTH, same="node"),),
    threshold=(hot("HOT", 3),),
    counter=(),
    digest="second",
    unknown_level=Level.RESTART_BUSINESS,
    public=PublicSettings(expire_after_ns=ns(5)),
    **GRACEFUL,
)
CATALOGS = {FIRST.digest: FIRST, SECOND.digest: SECOND}

CODES = (
    LINK_DOWN,
    "XID_79",
    "XID_13",
    "XID_45",
    "XID_99",
    "HUNG",
    "PORT",
    "8BADF00D",
    "SX_1",
    "SX_1.Fatal",
    "MENDED",
    "RestartRequest",
    "RestartBusiness",
)
CHIPS = ("npu0", "npu1", "0000:3b:00.0")
DEVICES = (*CHIPS, "node", "port0")
SOURCES = ("ascend", "kmsg", "agent")

_codes, _devices, _sources = st.sampled_from(CODES), st.sampled_from(DEVICES), st.sampled_from(SOURCES)
_assertions = st.sampled_from(("occur", "occur", "recover", "once"))

signals = st.builds(
    signal,
    _codes,
    _assertions,
    _devices,
    source=_sources,
    severity=st.sampled_from((None, None, 0, 3)),
    count=st.integers(0, 3),
    injected=st.sampled_from((False, False, False, True)),
    affect_verdict=st.booleans(),
    trusted=st.sampled_from((True, True, True, False)),
    backdated=st.booleans(),
    last_ns=st.none() | st.integers(0, 100 * SECOND_NS),
)
polls = st.builds(
    lambda codes, device, source, begun_s, complete: active(
        *codes, device=device, source=source, begun_s=begun_s, complete=complete
    ),
    st.lists(_codes, max_size=2),
    st.sampled_from((*DEVICES, ALL_DEVICES)),
    _sources,
    st.integers(0, 300),
    st.booleans(),
)
sightings = st.builds(
    seen,
    st.sampled_from(("npu0", "npu1", "gpu0")),
    st.sampled_from(("", "die0", "die1", "die2")),
    st.sampled_from(("", "0000:00:00.0", "0000:01:00.0", "0000:3b:00.0")),
)
orders = st.builds(
    lambda what, device, until_s: order(what, device, until_ns=until_s),
    st.sampled_from(("isolate", "release", "forget", "rebaseline", "dance")),
    _devices,
    st.none() | st.integers(0, 300).map(ns),
)
baselines = st.builds(
    lambda identity, number, content: BaselineSeen(
        source="ascend", identity=identity, number=number, content=content
    ),
    st.sampled_from(("die0", "die1", "die2")),
    st.integers(0, 2),
    st.sampled_from(("", "well", "better")),
)
edges = st.builds(edge, st.booleans(), st.sampled_from(("npu0", "npu1", "port0")))
marks = st.builds(mark, st.integers(0, 30), st.sampled_from(("npu0", "npu1")))
companions = st.builds(
    signal,
    st.sampled_from(("XID_45", "XID_79")),
    st.sampled_from(("once", "occur")),
    st.sampled_from(CHIPS[:2]),
)
volleys = st.builds(lambda device: signal("XID_79", "once", device), st.sampled_from(CHIPS[:2]))
unknown = st.builds(
    lambda device, begun_s, severity: ActiveSet(
        source="ascend",
        device=device,
        codes=(ActiveCode(code="8BADF00D", severity=severity),),
        begun_ns=ns(begun_s),
        complete=True,
    ),
    st.sampled_from(CHIPS[:2]),
    st.integers(0, 300),
    st.sampled_from((None, None, 1, 2)),
)
public = st.builds(
    lambda faults: PublicFaults(faults=tuple(faults)),
    st.lists(
        st.builds(
            PublicFault,
            report=st.builds(
                Report,
                sender=st.sampled_from(("pingmesh", "CCAE", "fd-online")),
                fault_id=st.sampled_from(("f-1", "f-2")),
                began_ms=st.integers(0, 3),
            ),
            code=st.sampled_from(("020001001", "110001010", "8BADF00D")),
            assertion=st.sampled_from((Assertion.OCCUR, Assertion.OCCUR, *Assertion)),
            devices=st.lists(st.sampled_from(("npu0", "node")), min_size=1, max_size=2, unique=True).map(
                tuple
            ),
            evidence=st.just({}),
        ),
        min_size=1,
        max_size=3,
    ),
)
inputs: st.SearchStrategy[Input] = st.one_of(
    public,
    public,
    volleys,
    volleys,
    signals,
    signals,
    signals,
    polls,
    companions,
    edges,
    marks,
    sightings,
    orders,
    baselines,
    unknown,
    st.builds(held, _devices, st.sampled_from((None, "job-a", "job-b", ""))),
    st.builds(
        lambda source, device: lost(source, device, required=True), _sources, st.sampled_from(("", *DEVICES))
    ),
    st.builds(back, _sources, st.sampled_from(("", *DEVICES))),
    st.builds(lambda device: DeviceGone(source="ascend", device=device, reason="off the bus"), _devices),
    st.sampled_from((CatalogChanged(digest="first"), CatalogChanged(digest="second"))),
    st.just(TablesRejected(reason="kernel.toml:3: level")),
    st.just(Tick()),
)
starts: st.SearchStrategy[Input] = st.builds(
    lambda boot: Started(boot_id=boot, version="1"), st.sampled_from(("boot-1", "boot-2"))
)
_pauses = st.sampled_from((0, 0, 1, ns(1), ns(3), ns(5), ns(10), ns(15), ns(30), ns(61), ns(130)))


def histories(given: st.SearchStrategy[Input], most: int = 40) -> st.SearchStrategy[list[tuple[int, Input]]]:
    """Pairs (rule time ns, input), time never stepping back."""

    def timed(steps: list[tuple[int, Input]]) -> list[tuple[int, Input]]:
        at_ns, out = ns(1), []
        for pause_ns, one in steps:
            at_ns += pause_ns
            out.append((at_ns, one))
        return out

    return st.lists(st.tuples(_pauses, given), min_size=most // 2, max_size=most).map(timed)


FUTURE: tuple[tuple[int, Input], ...] = tuple((ns(5000 + 20 * index), Tick()) for index in range(3))
