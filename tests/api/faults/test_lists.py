"""The calls that answer once: what is open, what was, what a code means, and why."""

import pytest

from nodeagent.client import ClientError, Level, Verdict
from nodeagent.core.model import EventKind
from nodeagent.messages.pb import fault_service_pb2 as pb
from nodeagent.messages.pb import types_pb2
from tests.api.samples import event
from tests.api.stage import FACTS, OFFSET_NS, Stage

LOW = event("gpu1", Level.PRE_SEPARATE_NPU, code="XID_63", condition_level=Level.PRE_SEPARATE_NPU)


async def test_devices_are_listed_with_their_verdicts_the_node_first(stage: Stage) -> None:
    await stage.commit(event("gpu0"), LOW)
    async with stage.client() as client:
        devices = await client.devices()
        one = await client.devices(["gpu1-id"])
    assert [(device.name, device.verdict) for device in devices] == [
        ("node", Verdict.ALLOW),
        ("gpu0", Verdict.ISOLATE),
        ("gpu1", Verdict.NO_NEW_JOBS),
    ]
    assert [device.name for device in one] == ["gpu1"]


async def test_readings_are_in_base_units_as_the_metrics_are(stage: Stage) -> None:
    await stage.commit(event("gpu0"), LOW)
    stage.readings = {
        "gpu0": {"thermal_slowdown_minutes_total.sw_thermal": 1.5, "temperature_celsius": 41.0},
        "gpu1": {"link_rate_bits_per_second": 4e11},
    }
    async with stage.client() as client:
        assert await client.readings() == {
            "gpu0": {"thermal_slowdown_seconds_total.sw_thermal": 90.0, "temperature_celsius": 41.0},
            "gpu1": {"link_rate_bytes_per_second": 5e10},
        }


async def test_conditions_are_listed_by_device_and_by_level(stage: Stage) -> None:
    await stage.commit(event("gpu0"), LOW)
    async with stage.client() as client:
        everything = await client.conditions()
        of_one = await client.conditions(["gpu1"])
        serious = await client.conditions(minimum_level=Level.SEPARATE_NPU)
    assert [condition.code for condition in everything] == ["XID_79", "XID_63"]
    assert [condition.code for condition in of_one] == ["XID_63"]
    assert [condition.code for condition in serious] == ["XID_79"]


async def test_times_on_the_rule_clock_are_told_as_wall_time(stage: Stage) -> None:
    await stage.commit(event())
    async with stage.client() as client:
        answer = await client.call(pb.ListConditionsRequest())
    assert answer.conditions[0].opened_at.ToNanoseconds() == OFFSET_NS + event().at_ns
    assert answer.holds[0].device == "gpu0"
    assert not answer.holds[0].HasField("until")


async def test_events_are_listed_page_by_page(stage: Stage) -> None:
    await stage.commit(*(event() for _ in range(5)))
    async with stage.client() as client:
        first = await client.call(pb.ListEventsRequest(limit=3))
        rest = await client.call(pb.ListEventsRequest(after_seq=first.next_after_seq, limit=3))
    assert ([each.seq for each in first.events], first.more) == ([1, 2, 3], True)
    assert ([each.seq for each in rest.events], rest.more) == ([4, 5], False)
    assert (rest.oldest_seq, rest.last_seq) == (1, 5)


async def test_the_newest_events_are_listed_oldest_first(stage: Stage) -> None:
    for device in ("gpu0", "gpu1", "gpu0", "gpu1", "gpu0"):
        await stage.commit(event(device))
    async with stage.client() as client:
        newest = await client.call(pb.ListEventsRequest(limit=2, newest=True))
        of_one = await client.call(
            pb.ListEventsRequest(limit=2, newest=True, filter=pb.EventFilter(devices=["gpu1"]))
        )
    assert [each.seq for each in newest.events] == [4, 5]
    assert [each.seq for each in of_one.events] == [2, 4]


async def test_the_newest_events_are_found_on_the_disk_too(stage: Stage) -> None:
    await stage.commit(event("gpu1"))
    for _ in range(5):
        await stage.commit(*(event() for _ in range(1000)))
    wanted = pb.EventFilter(devices=["gpu1"])
    async with stage.client() as client:
        newest = await client.call(pb.ListEventsRequest(newest=True, filter=wanted))
    assert [each.seq for each in newest.events] == [1]


async def test_listed_events_pass_the_filter_as_watched_ones_do(stage: Stage) -> None:
    lowered = event("gpu0", Level.SUB_HEALTH, EventKind.CLEARED)
    quiet = event("gpu1", Level.NOT_HANDLE, EventKind.NOTICE, condition_level=Level.NOT_HANDLE)
    await stage.commit(event("gpu0"), lowered, quiet)
    serious = pb.EventFilter(minimum_level=types_pb2.LEVEL_SEPARATE_NPU)
    async with stage.client() as client:
        answer = await client.call(pb.ListEventsRequest(filter=serious))
    assert [each.seq for each in answer.events] == [1, 2]


async def test_the_node_tells_its_verdict_its_sources_and_its_store(stage: Stage) -> None:
    await stage.commit(event())
    async with stage.client() as client:
        node = await client.call(pb.GetNodeRequest())
    assert (node.node.node_id, node.node.node_name, node.version) == (
        FACTS.node_id,
        FACTS.node_name,
        FACTS.version,
    )
    assert node.device.verdict == types_pb2.VERDICT_ALLOW
    assert [(source.name, source.observing, source.required) for source in node.sources] == [
        ("kmsg", True, True)
    ]
    assert (node.last_seq, node.oldest_seq, node.durable, node.catalog_digest) == (1, 1, True, "cafe")
    assert node.started_at.ToNanoseconds() == FACTS.started_wall_ns


OUT = pb.Phase(verdict=types_pb2.VERDICT_ISOLATE, handling=types_pb2.HANDLING_RESCHEDULE)


async def test_a_code_is_explained_in_the_words_of_the_tables(stage: Stage) -> None:
    async with stage.client() as client:
        answer = await client.call(pb.ExplainCodeRequest(codes=["xid_79"]))
    (explanation,) = answer.explanations
    assert explanation == pb.CodeExplanation(
        code="XID_79",
        known=True,
        kind=types_pb2.KIND_CHIP,
        vendor="nvidia",
        name="GPU has fallen off the bus",
        level=types_pb2.LEVEL_SEPARATE_NPU,
        clear_on=["reboot", "10m"],
        description="The driver lost the connection.",
        action="Power-cycle the node.",
        rules=["bus-repeat"],
        file="nvidia.toml:12",
        affects="self",
        recovery="level",
        modes=[
            pb.ModePhases(mode="rescheduling", in_force=True, phases=[OUT]),
            pb.ModePhases(mode="graceful", phases=[OUT]),
        ],
        rule_details=[
            pb.RuleExplanation(
                id="bus-repeat",
                kind="frequency",
                text="3 times in 1d: ManuallySeparateNPU, until a person releases it",
            )
        ],
    )


async def test_a_code_without_a_row_of_its_own_is_explained_by_its_family_or_as_unknown(stage: Stage) -> None:
    async with stage.client() as client:
        answer = await client.call(pb.ExplainCodeRequest(codes=["XID_999", "80E18005"]))
    family, unknown = answer.explanations
    assert (family.code, family.family, family.known, family.rules) == (
        "XID_999",
        "XID_*",
        True,
        ["any-repeat"],
    )
    assert (unknown.code, unknown.known) == ("80E18005", False)


async def test_why_leads_from_the_verdict_to_the_condition_the_rule_the_table_and_the_events(
    stage: Stage,
) -> None:
    await stage.commit(event("gpu0"), LOW)
    async with stage.client() as client:
        answer = await client.call(pb.WhyDeviceRequest(device="gpu0"))
    assert answer.device.verdict == types_pb2.VERDICT_ISOLATE
    (contribution,) = answer.contributions
    assert contribution.reason.kind == types_pb2.REASON_KIND_CONDITION
    assert contribution.condition.evidence["line"] == "NVRM: Xid (PCI:0000:3b:00): 79"
    assert (contribution.explanation.rules, contribution.explanation.file) == (
        ["bus-repeat"],
        "nvidia.toml:12",
    )
    assert [each.seq for each in contribution.events] == [1]


@pytest.mark.parametrize(
    ("request_", "status", "words"),
    [
        (
            pb.WhyDeviceRequest(device="gpu9"),
            "NOT_FOUND",
            "'gpu9' is not known; the nearest is gpu0; there are: node, gpu0",
        ),
        (pb.ListEventsRequest(limit=1001), "INVALID_ARGUMENT", "limit: 1001; it must be 1 to 1000, or 0"),
        (pb.ExplainCodeRequest(), "INVALID_ARGUMENT", "codes: 1 to 100, not 0"),
        (
            pb.ListDevicesRequest(devices=["x"] * 257),
            "INVALID_ARGUMENT",
            "devices: 257 names; at most 256",
        ),
    ],
)
async def test_a_call_that_cannot_be_answered_says_what_would_be_right(
    stage: Stage, request_: pb.WhyDeviceRequest, status: str, words: str
) -> None:
    await stage.commit(event())
    async with stage.client() as client:
        with pytest.raises(ClientError) as refused:
            await client.call(request_)
    assert refused.value.status == status
    assert words in refused.value.reason
