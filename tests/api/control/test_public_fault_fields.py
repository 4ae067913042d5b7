"""What a message of another system may hold: what is wrong is named by its path, with what is right."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from nodeagent.api.control import public_faults
from nodeagent.api.control.reportable import ThisNode
from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.model import Assertion, PublicFault, Report
from nodeagent.messages.pb import control_service_pb2 as pb
from tests.api.control.reported import BEGAN_S, CCAE, NODE, request

UNPRINTABLE = ("\x1b]0;x\x07", "\n", "\t", "\x9b31m", "\u202e", "\u2066", "\u200f", "\u200b", "\u2028")

Change = Callable[[pb.ReportPublicFaultRequest], object]


def checked(message: pb.ReportPublicFaultRequest, node: ThisNode = NODE) -> list[PublicFault]:
    public_faults.check_message(message, node.now_ms)
    return [
        public_faults.checked_fault(f"faults[{place}]", each, CCAE, node)
        for place, each in enumerate(message.faults)
    ]


def refusal(change: Change, node: ThisNode = NODE) -> tuple[Status, str]:
    message = request()
    change(message)
    with pytest.raises(Refusal) as refused:
        checked(message, node)
    return refused.value.status, refused.value.reason


def test_a_fault_comes_to_the_core_with_all_that_its_sender_shows() -> None:
    message = request()
    del message.faults[1:]
    del message.faults[0].influence[1:]
    message.faults[0].location.clear()
    message.faults[0].location["npuIp"] = "10.0.0.7"
    message.faults[0].description = "link flaps"
    assert checked(message) == [
        PublicFault(
            report=Report(sender="CCAE", fault_id="f" * 128, began_ms=BEGAN_S * 1000 + 123, by=CCAE.by),
            code="010001001",
            assertion=Assertion.OCCUR,
            devices=("id-npu5", "id-npu0"),
            evidence={
                "sender": "CCAE",
                "fault_id": "f" * 128,
                "fault_type": "network",
                "began_at": "2026-05-28T20:26:40.123Z",
                "description": "link flaps",
                "location.npuIp": "10.0.0.7",
            },
        )
    ]


def test_the_largest_message_is_taken() -> None:
    assert len(checked(request())) == 100


@pytest.mark.parametrize(
    ("influence", "devices"),
    [
        ([pb.PublicFaultInfluence()], ("id-node",)),
        ([pb.PublicFaultInfluence(node_serial="SN7", device_ids=[5])], ("id-npu5",)),
        ([pb.PublicFaultInfluence(node_name="NODE-7", node_serial="wrong, but not read")], ("id-node",)),
        (
            [pb.PublicFaultInfluence(device_ids=[0]), pb.PublicFaultInfluence(device_ids=[5, 0])],
            ("id-npu0", "id-npu5"),
        ),
    ],
)
def test_a_fault_is_of_the_chips_that_are_named_else_of_the_node(
    influence: list[pb.PublicFaultInfluence], devices: tuple[str, ...]
) -> None:
    message = request()
    del message.faults[1:]
    del message.faults[0].influence[:]
    message.faults[0].influence.extend(influence)
    assert checked(message)[0].devices == devices


def influence(**values: object) -> Change:
    return lambda message: message.faults[3].influence[2].CopyFrom(pb.PublicFaultInfluence(**values))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: setattr(m, "id", "short"), 'id: 8 to 128 letters, digits, "-", "_" and "." are needed'),
        (lambda m: setattr(m, "id", "a" * 129), "id: 8 to 128"),
        (lambda m: setattr(m, "id", "with space"), "id: 8 to 128"),
        (lambda m: setattr(m, "id", "newline-\n"), "id: 8 to 128"),
        (lambda m: m.ClearField("sent_at"), "sent_at: missing; a time from 2025 on is needed"),
        (lambda m: m.sent_at.FromSeconds(1_735_689_599), "sent_at: 1735689599 s after 1970 is"),
        (lambda m: m.sent_at.CopyFrom(Timestamp(seconds=2**62)), "sent_at: "),
        (lambda m: m.sent_at.CopyFrom(Timestamp(seconds=BEGAN_S, nanos=-1)), "sent_at: "),
        (lambda m: setattr(m, "version", "2.0"), "version: '2.0' is not '1.0'"),
        (lambda m: m.ClearField("faults"), "faults: 1 to 100 are needed, not 0"),
        (lambda m: m.faults.append(m.faults[0]), "faults: 1 to 100 are needed, not 101"),
        (lambda m: setattr(m.faults[3], "fault_id", ""), "faults[3].fault_id: 8 to 128 letters"),
        (
            lambda m: setattr(m.faults[3], "fault_type", 0),
            "faults[3].fault_type: 0 is not one of PUBLIC_FAULT_TYPE_NPU, PUBLIC_FAULT_TYPE_NODE,",
        ),
        (lambda m: setattr(m.faults[3], "fault_type", 9), "faults[3].fault_type: 9 is not one of"),
        (lambda m: setattr(m.faults[3], "code", "10001001"), "faults[3].code: 9 characters are needed"),
        (
            lambda m: setattr(m.faults[3], "code", "010009999"),
            "faults[3].code: '010009999' has no row of kind public; there are 1, such as 010001001",
        ),
        (lambda m: setattr(m.faults[3], "code", "080E18005"), "faults[3].code: '080E18005' has no row of"),
        (lambda m: m.faults[3].ClearField("began_at"), "faults[3].began_at: missing"),
        (lambda m: m.faults[3].began_at.FromSeconds(1), "faults[3].began_at: 1 s after 1970"),
        (
            lambda m: setattr(m.faults[3], "assertion", 0),
            "faults[3].assertion: 0 is not one of ASSERTION_OCCUR, ASSERTION_RECOVER, ASSERTION_ONCE",
        ),
        (
            lambda m: m.faults[3].location.update({"eleventh": ""}),
            "faults[3].location: at most 10 entries, not 11",
        ),
        (
            lambda m: (m.faults[3].location.clear(), m.faults[3].location.update({"k" * 17: ""})),
            "faults[3].location: keys have 1 to 16 printable characters, unlike 'kkkk",
        ),
        (
            lambda m: m.faults[3].location.update({"key-000000000001": "v" * 129}),
            "faults[3].location['key-000000000001']: at most 128 characters, not 129",
        ),
        (
            lambda m: m.faults[3].ClearField("influence"),
            "faults[3].influence: 1 to 1000 entries are needed, not 0",
        ),
        (
            lambda m: m.faults[3].influence.append(pb.PublicFaultInfluence()),
            "faults[3].influence: 1 to 1000 entries are needed, not 1001",
        ),
        (
            influence(node_name="node-8"),
            "faults[3].influence[2].node_name: 'node-8' is another node; this is 'Node-7': report it there",
        ),
        (
            influence(node_serial="SN8"),
            "faults[3].influence[2].node_serial: 'SN8' is another node; this is 'SN7': report it there",
        ),
        (
            influence(device_ids=range(33)),
            "faults[3].influence[2].device_ids: at most 32, not 33",
        ),
        (
            influence(device_ids=[0, 32]),
            "faults[3].influence[2].device_ids[1]: 0 to 31 are needed, not 32",
        ),
        (
            influence(device_ids=[0, 5, 0]),
            "faults[3].influence[2].device_ids[2]: 0 is listed twice",
        ),
        (
            lambda m: setattr(m.faults[3], "description", "d" * 513),
            "faults[3].description: at most 512 characters on one line are needed",
        ),
        *(
            (
                lambda m, text=text: setattr(m.faults[3], "description", f"a{text}b"),
                "faults[3].description: at most 512 characters on one line are needed, all of them printable",
            )
            for text in UNPRINTABLE
        ),
        *(
            (
                lambda m, text=text: m.faults[3].location.update({"key-000000000001": text}),
                f"faults[3].location['key-000000000001']: printable characters are needed, not {text!r}",
            )
            for text in UNPRINTABLE
        ),
        (
            lambda m: m.sent_at.FromSeconds(BEGAN_S + 361),
            (
                "sent_at: 2026-05-28T20:32:41Z is 301 s later than this node's clock, 2026-05-28T20:27:40Z;"
                " at most 300 s are taken: set the sender's clock, or this node's"
            ),
        ),
        (
            lambda m: m.faults[3].began_at.FromSeconds(9_999_999_999),
            "faults[3].began_at: 2286-11-20T17:46:39Z is 8219999939 s later than this node's clock",
        ),
        (
            lambda m: m.faults[3].began_at.CopyFrom(Timestamp(seconds=2**62)),
            "faults[3].began_at: 4611686018427387904 s after 1970 is",
        ),
    ],
)
def test_what_is_wrong_is_named_by_its_path_with_what_is_right(change: Change, reason: str) -> None:
    status, said = refusal(change)
    assert status is Status.INVALID_ARGUMENT
    assert said.startswith(reason)


def test_a_chip_that_no_driver_has_listed_is_not_found() -> None:
    assert refusal(influence(device_ids=[5, 6])) == (
        Status.NOT_FOUND,
        (
            "faults[3].influence[2].device_ids[1]: 'npu6' is not known; the nearest is npu5;"
            " there are: node, npu0, npu5"
        ),
    )


def test_a_serial_number_is_not_checked_where_the_node_does_not_know_its_own() -> None:
    node = replace(NODE, serial="")
    assert refusal(influence(node_serial="SN7"), node) == (
        Status.INVALID_ARGUMENT,
        (
            "faults[3].influence[2].node_serial: this node does not know its own;"
            " set public.node_serial, or use node_name"
        ),
    )


def test_a_sender_s_clock_may_be_five_minutes_ahead() -> None:
    message = request()
    message.sent_at.FromSeconds(BEGAN_S + 360)
    message.faults[0].began_at.FromSeconds(BEGAN_S + 360)
    assert checked(message)[0].report.began_ms == (BEGAN_S + 360) * 1000
