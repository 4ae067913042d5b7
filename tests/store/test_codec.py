"""Every value the store may hold comes back equal from its bytes."""

import dataclasses
import types
from enum import StrEnum
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.core.model import (
    Affects,
    Assertion,
    Backing,
    Belief,
    Carried,
    Cell,
    Condition,
    Event,
    Grade,
    Holder,
    Input,
    Level,
    Origin,
    Presence,
    PublicFault,
    PublicFaults,
    Report,
    RuleCell,
    Withdrawn,
)
from nodeagent.core.rules.kinds import RAISING
from nodeagent.store import codec
from nodeagent.store.errors import StoreDamagedError
from tests.store.samples import event, signal

of_one_kind = settings(max_examples=60)
"""Of each of 40 kinds. Together they meet each member of each enumeration, numbers of either sign, and
texts and lists that are empty and that are not.
"""

STORED_INTEGERS = st.integers(min_value=-(2**63), max_value=2**63 - 1)


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that occurs in the model."""
    simple = {
        int: STORED_INTEGERS,
        str: st.text(max_size=8),
        bool: st.booleans(),
        float: st.floats(allow_nan=False),
        types.NoneType: st.none(),
    }
    if hint in simple:
        return simple[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return st.one_of([values_of(one) for one in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return st.tuples(*map(values_of, arguments))
    if origin is tuple:
        return st.lists(values_of(arguments[0]), max_size=2).map(tuple)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        hints = get_type_hints(hint)
        fields = {field.name: values_of(hints[field.name]) for field in dataclasses.fields(hint)}
        return st.fixed_dictionaries(fields).map(lambda values: hint(**values))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return st.sampled_from(list(hint))
    return st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2)


@pytest.mark.parametrize("kind", [kind for kind in get_args(Input) if kind is not Carried])
def test_every_kind_of_input_comes_back_equal(kind: type[Input]) -> None:
    @of_one_kind
    @given(values_of(kind))
    def comes_back(value: Input) -> None:
        assert codec.decode_input(*codec.encode_input(value)) == value

    comes_back()


CELLS = [
    *(kind for kind in get_args(Cell) if kind is not RuleCell),
    *(kind.cell for kind in RAISING),
]


@pytest.mark.parametrize("kind", CELLS)
def test_every_kind_of_cell_comes_back_equal(kind: type[Cell]) -> None:
    @of_one_kind
    @given(values_of(kind))
    def comes_back(cell: Cell) -> None:
        carried = Carried(cell=cell)
        assert codec.decode_cells(codec.encode_cells([carried], 7)) == (carried,)
        assert codec.decode_input(*codec.encode_input(carried)) == carried

    comes_back()


@given(values_of(Event))
def test_an_event_comes_back_equal(value: Event) -> None:
    found = codec.decode_event((1, 2, codec.encode_event(value)))
    assert (found.seq, found.wall_ns, found.event) == (1, 2, value)


def test_an_input_that_cannot_be_read_is_named_by_its_number() -> None:
    kind, body = codec.encode_input(signal(1))
    with pytest.raises(StoreDamagedError, match="input 7: an input of kind Signal cannot be decoded"):
        codec.decode_inputs([(6, 0, 0, kind, body), (7, 0, 0, kind, body[:-3])])
    with pytest.raises(StoreDamagedError, match="input 8: an input of unknown kind 'Later'"):
        codec.decode_inputs([(8, 0, 0, "Later", body)])


def test_an_event_that_cannot_be_read_is_named_by_its_number() -> None:
    with pytest.raises(StoreDamagedError, match="event 7 cannot be decoded"):
        codec.decode_event((7, 0, codec.encode_event(event(1))[:-3]))


STORED_CONDITION: Final = (
    b'\xde\x00"\xa2id\xaeGPU-1/XID_79#3\xa9device_id\xa5GPU-1\xa4code\xa6XID_79\xa4name\xb2fallen off the bus'
    b"\xa6source\xa4kmsg\xaabase_level\xaaRestartNPU\xa5level\xabSeparateNPU\xa9opened_ns\x0b\xa7last_ns\x0c"
    b"\xa5count\r\xaapresent_ns\x0e\xacrecovered_ns\x0f\xa6judged\xc3\xa9timed_out\xc3\xa5phase\x10"
    b"\xaelevel_since_ns\x11\xa7held_by\x91\x84\xa3pid\x12\xaastart_time\x13\xa7command\xa5train\xa3job\xa2j1"
    b"\xa8severity\x02\xa7unknown\xc3\xa7affects\xa4node\xacuser_induced\xc3\xacrescheduling\xc3"
    b"\xa8injected\xc3\xaeaffect_verdict\xc2\xa7boot_id\xa6boot-1\xa8evidence\x81\xa3pid\xa218"
    b"\xaboccurred_ns\x14\xa9relations\x92\xa2r1\xa2r2\xa4rule\xa9counter-1\xa7backing\xaccontradicted"
    b"\xabbelieved_ns\x15\xa7once_ns\x16\xa6report\x84\xa6sender\xa3bmc\xa8fault_id\xa2f1\xa8began_ms\x17"
    b"\xa2by\xa5uid:0\xabreported_ns\x18"
)
"""As written by a version whose conditions had all of these fields themselves."""

CONDITION: Final = Condition(
    id="GPU-1/XID_79#3",
    device_id="GPU-1",
    code="XID_79",
    name="fallen off the bus",
    source="kmsg",
    presence=Presence(
        opened_ns=11,
        last_ns=12,
        count=13,
        present_ns=14,
        recovered_ns=15,
        judged=True,
        boot_id="boot-1",
        occurred_ns=20,
        once_ns=22,
    ),
    grade=Grade(
        base_level=Level.RESTART_NPU,
        level=Level.SEPARATE_NPU,
        phase=16,
        level_since_ns=17,
        timed_out=True,
        relations=("r1", "r2"),
        severity=2,
        unknown=True,
        affects=Affects.NODE,
        affect_verdict=False,
        user_induced=True,
        rescheduling=True,
    ),
    backing=Backing(belief=Belief.CONTRADICTED, believed_ns=21, evidence={"pid": "18"}),
    origin=Origin(
        rule="counter-1",
        injected=True,
        users=(Holder(pid=18, start_time=19, command="train", job="j1"),),
        report=Report(sender="bmc", fault_id="f1", began_ms=23, by="uid:0"),
        reported_ns=24,
    ),
)


def test_a_condition_of_a_version_that_had_no_values_in_it_comes_back() -> None:
    carried = Carried(cell=CONDITION)
    assert codec.decode_input("Carried:Condition", STORED_CONDITION) == carried
    assert codec.decode_cells([(0, "Condition", STORED_CONDITION, 7)]) == (carried,)


def test_a_condition_is_stored_as_that_version_reads_it() -> None:
    """The same map: every reader takes its keys in any order."""
    kind, body = codec.encode_input(Carried(cell=CONDITION))
    assert (kind, len(body)) == ("Carried:Condition", len(STORED_CONDITION))
    assert msgspec.msgpack.decode(body) == msgspec.msgpack.decode(STORED_CONDITION)


def test_a_condition_of_a_version_that_lacked_fields_takes_their_defaults() -> None:
    oldest = {
        "id": "d/X#1",
        "device_id": "d",
        "code": "X",
        "name": "x",
        "source": "kmsg",
        "base_level": "NotHandleFault",
        "level": "NotHandleFault",
        "opened_ns": 1,
        "last_ns": 2,
    }
    body = msgspec.msgpack.encode({**oldest, "of_a_later_version": 3})
    condition = Condition(
        id="d/X#1",
        device_id="d",
        code="X",
        name="x",
        source="kmsg",
        presence=Presence(opened_ns=1, last_ns=2),
        grade=Grade(base_level=Level.NOT_HANDLE, level=Level.NOT_HANDLE),
    )
    assert codec.decode_input("Carried:Condition", body) == Carried(cell=condition)


def test_a_condition_that_lacks_a_field_is_damage() -> None:
    with pytest.raises(StoreDamagedError, match=r"a cell of kind Condition cannot be decoded: .*`opened_ns`"):
        codec.decode_input("Carried:Condition", STORED_CONDITION.replace(b"opened_ns", b"opened_ms"))


def test_reports_of_a_version_that_kept_no_caller_still_open() -> None:
    """Neither who opened them, nor when their recovery came."""
    report = {"sender": "CCAE", "fault_id": "fault-01", "began_ms": 5}
    withdrawn = msgspec.msgpack.encode({"report": "CCAE/fault-01", "began_ms": 5})
    fault = {"report": report, "code": "020001001", "assertion": "occur", "devices": ["npu0"], "evidence": {}}
    given = msgspec.msgpack.encode({"faults": [fault]})

    assert codec.decode_cells([(0, "Withdrawn", withdrawn, 7)]) == (
        Carried(cell=Withdrawn(report="CCAE/fault-01", began_ms=5, at_ns=0)),
    )
    assert codec.decode_input("PublicFaults", given) == PublicFaults(
        faults=(
            PublicFault(
                report=Report(sender="CCAE", fault_id="fault-01", began_ms=5, by=""),
                code="020001001",
                assertion=Assertion.OCCUR,
                devices=("npu0",),
            ),
        )
    )
