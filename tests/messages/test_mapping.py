"""A field that only one side has, and a word or number that only one side has, stop the import."""

from dataclasses import dataclass
from enum import StrEnum

import pytest

from nodeagent.core.model import Level
from nodeagent.messages import enums
from nodeagent.messages.enums import EnumError
from nodeagent.messages.mapping import MappingError, writer
from nodeagent.messages.pb import control_service_pb2, types_pb2


@dataclass(frozen=True, kw_only=True)
class Change:
    """As ``LevelChange`` of the proto has it."""

    id: str
    device: str
    code: str
    before: Level
    after: Level | None


@dataclass(frozen=True, kw_only=True)
class Step:
    """As ``ResetStep``, but for its name of what is done."""

    after_ns: int | None
    done: str


def test_fields_of_one_name_go_to_each_other_and_what_is_none_is_not_set() -> None:
    write = writer(Change, control_service_pb2.LevelChange)
    change = Change(id="c1", device="gpu0", code="XID_79", before=Level.SEPARATE_NPU, after=None)
    assert write(change) == control_service_pb2.LevelChange(
        id="c1", device="gpu0", code="XID_79", before=types_pb2.LEVEL_SEPARATE_NPU
    )


def test_fields_of_a_nested_value_are_taken_as_its_own_and_what_the_proto_lacks_of_them_is_not_sent() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Place:
        device: str
        slot: int = 7

    @dataclass(frozen=True, kw_only=True)
    class Placed:
        id: str
        place: Place
        code: str = "XID_79"
        before: Level | None = None
        after: Level | None = None

    write = writer(Placed, control_service_pb2.LevelChange, nested=["place"])
    assert write(Placed(id="c1", place=Place(device="gpu0"))) == control_service_pb2.LevelChange(
        id="c1", device="gpu0", code="XID_79"
    )
    with pytest.raises(MappingError, match=r"LevelChange\.device of the proto: Placed has no such field"):
        writer(Placed, control_service_pb2.LevelChange)


def test_a_length_of_time_of_nothing_is_set_and_none_is_not() -> None:
    write = writer(Step, control_service_pb2.ResetStep, renamed={"what": "done"})
    begun, at_once = write(Step(after_ns=None, done="reset")), write(Step(after_ns=0, done="announce"))
    assert (begun.HasField("after"), at_once.HasField("after")) == (False, True)
    assert begun.what == "reset"


def test_a_field_of_the_proto_that_nothing_fills_is_named() -> None:
    with pytest.raises(MappingError) as refused:
        writer(Step, control_service_pb2.ResetStep)
    assert str(refused.value) == (
        "ResetStep.what of the proto: Step has no such field;"
        " add it there, or name it in computed or renamed where its writer is made"
    )


def test_a_field_of_the_class_that_the_proto_lacks_is_named() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Repeated(Change):
        times: int

    with pytest.raises(MappingError) as refused:
        writer(Repeated, control_service_pb2.LevelChange)
    assert str(refused.value) == (
        "Repeated.times: LevelChange of the proto has no such field;"
        " add it there, or name it in unsent where its writer is made"
    )


@pytest.mark.parametrize(
    ("exception", "name"), [("computed", "lost"), ("unsent", "lost"), ("unsent", "code")]
)
def test_an_exception_that_is_none_any_more_is_named(exception: str, name: str) -> None:
    with pytest.raises(MappingError) as refused:
        writer(Change, control_service_pb2.LevelChange, **{exception: [name]})  # type: ignore[arg-type]
    assert str(refused.value) == (
        f"Change to LevelChange: {name} is named as an exception, and is none;"
        " take it out where their writer is made"
    )


def test_a_message_within_another_needs_its_writer() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Everyone:
        holders: tuple[str, ...]

    with pytest.raises(MappingError, match="nothing makes a Holder; name it in parts"):
        writer(Everyone, types_pb2.Holders)


def test_a_word_without_a_number_is_named() -> None:
    class More(StrEnum):
        CHIP = "chip"
        MODULE = "module"

    with pytest.raises(EnumError, match=r"More.MODULE: the proto's enum has no KIND_MODULE; add it"):
        enums.numbers_of(More, types_pb2.Kind, "KIND")


def test_a_number_without_a_word_is_named() -> None:
    class Fewer(StrEnum):
        OFF = "off"
        DRY_RUN = "dry-run"
        ON = "on"

    with pytest.raises(EnumError, match="the proto's enum RESET_MODE also has ASK; add it to Fewer"):
        enums.numbers_of(Fewer, types_pb2.ResetMode, "RESET_MODE")
