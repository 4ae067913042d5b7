"""A source without devices shows what is active on the node: it opens and ends faults there by its lists."""

from nodeagent.core.model import ActiveCode, ActiveSet, EventKind, Level, Verdict
from tests.core.build import (
    back,
    begin,
    catalog,
    condition,
    emitted,
    lost,
    ns,
    of,
    open_codes,
    row,
    run,
    stands,
)

DIMM = "01000017"
FAN = "04000001"
TABLES = catalog(row(DIMM, Level.PRE_SEPARATE_FAULT), row(FAN, Level.PRE_SEPARATE_FAULT))


def shown(begun_s: float, *codes: str, complete: bool = True) -> ActiveSet:
    return ActiveSet(
        source="bmc",
        device="node",
        codes=tuple(ActiveCode(code=code, evidence={"parts": "DIMM 7"}) for code in codes),
        begun_ns=ns(begun_s),
        complete=complete,
    )


def test_what_a_list_shows_opens_with_its_evidence_and_ends_with_it() -> None:
    engine = begin(TABLES, chips=0)
    events = run(
        engine, [(1, back("bmc")), (2, shown(2, DIMM)), (3, shown(3, DIMM, FAN)), (4, shown(4, FAN))]
    )
    assert [one for one in emitted(events) if one[2]] == [
        ("raised", "node", DIMM),
        ("raised", "node", FAN),
        ("cleared", "node", DIMM),
    ]
    assert condition(engine, FAN).backing.evidence == {"parts": "DIMM 7"}


def test_a_list_that_may_lack_codes_ends_nothing() -> None:
    engine = begin(TABLES, chips=0)
    run(engine, [(1, back("bmc")), (2, shown(2, DIMM)), (3, shown(3, FAN, complete=False))])
    assert sorted(code for _, code in open_codes(engine)) == [DIMM, FAN]


def test_a_required_source_that_comes_back_with_a_list_is_told_once_and_the_node_is_known_again() -> None:
    engine = begin(TABLES, chips=0)
    run(engine, [(1, back("bmc")), (2, lost("bmc", required=True))])
    assert stands(engine, "node")[1] is Verdict.UNKNOWN
    events = run(engine, [(3, shown(3)), (3, back("bmc"))])
    assert [event.verdict for event in of(events, EventKind.SOURCE_BACK)] == [Verdict.ALLOW]
