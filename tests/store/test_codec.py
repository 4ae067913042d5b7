"""Every value the store may hold comes back equal from its bytes."""

import dataclasses
import types
from enum import StrEnum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.core.model import (
    Assertion,
    Carried,
    Cell,
    Event,
    Input,
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
