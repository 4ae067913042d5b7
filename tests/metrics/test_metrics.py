"""/metrics: scraped over HTTP as Prometheus does, while the loop works and while it does not."""

import asyncio
import http.client
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from nodeagent.core.model import EventKind, Level, Source, View
from nodeagent.metrics.collector import NodeMetrics
from nodeagent.metrics.daemon import Health, SourceHealth, source_metrics
from nodeagent.metrics.devices import device_metrics, open_metrics, verdicts_since
from nodeagent.metrics.http import MetricsServer
from nodeagent.metrics.workers import worker_metrics
from tests.api.samples import NODE_DEVICE, event
from tests.api.stage import FACTS, Stage
from tests.waiting import until

HEALTH = Health(
    queue_depth=3,
    queue_capacity=1024,
    inputs=17,
    commits=4,
    commit_total_s=0.5,
    commit_last_s=0.125,
    volatile=True,
    dropped_events=11,
    dropped_inputs=12,
    public_messages={("CCAE", "accepted"): 3, ("(unknown)", "invalid_argument"): 2},
    public_faults={("CCAE", "taken"): 250},
    sources=(
        SourceHealth(
            source="kmsg",
            state="ready",
            restarts=2,
            polls=40,
            poll_failures=3,
            last_poll_duration_s=0.25,
            last_poll_ok=True,
            late_devices=("npu5",),
            abandoned_pids=(77,),
            records_lost=7,
            garbled=5,
        ),
        SourceHealth(source="ascend", state="ready", listed_chips=8, expected_chips=0),
        SourceHealth(source="nvidia", state="ready", listed_chips=7, expected_chips=8),
    ),
)


@pytest.fixture
async def served(stage: Stage) -> AsyncIterator[MetricsServer]:
    metrics = NodeMetrics(feed=stage.feed, ledger=stage.ledger, facts=FACTS, health=lambda: HEALTH)
    server = MetricsServer("127.0.0.1:0", metrics)
    server.start()
    counting = asyncio.create_task(metrics.run(after_seq=0))
    yield server
    counting.cancel()
    server.stop()


def get(server: MetricsServer, path: str = "/metrics") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body


def scrape(server: MetricsServer) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    status, body = get(server)
    assert status == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(body)
        for sample in family.samples
    }


def series(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


async def test_the_state_of_a_device_is_a_series_and_its_part_another(
    stage: Stage, served: MetricsServer
) -> None:
    await stage.commit(event("gpu0"))
    samples = await asyncio.to_thread(scrape, served)
    of = {"device": "gpu0", "kind": "chip"}
    assert samples[series("nodeagent_device_verdict", **of, verdict="ISOLATE")] == 1
    assert series("nodeagent_device_verdict", **of, verdict="ALLOW") not in samples
    assert samples[series("nodeagent_device_level", **of, level="SeparateNPU")] == 1
    assert samples[series("nodeagent_device_handling", **of, handling="RESCHEDULE")] == 1
    assert samples[series("nodeagent_device_observed", **of)] == 1
    (info,) = [
        dict(labels)
        for name, labels in samples
        if name == "nodeagent_device_info" and ("device", "gpu0") in labels
    ]
    assert sorted(info) == sorted(
        ["device", "kind", "id", "vendor", "product", "serial", "pci", "slot", "firmware", "driver", "group"]
    )


async def test_each_state_has_a_series_where_that_is_configured(stage: Stage) -> None:
    await stage.commit(event("gpu0"))
    families = device_metrics(stage.feed.current.view, all_states=True)
    verdicts = next(each for each in families if each.name == "nodeagent_device_verdict")
    values = {
        each.labels["verdict"]: each.value for each in verdicts.samples if each.labels["device"] == "gpu0"
    }
    assert values == {"ALLOW": 0, "UNKNOWN": 0, "NO_NEW_JOBS": 0, "ISOLATE": 1}


async def test_an_open_condition_shows_since_when(stage: Stage) -> None:
    await stage.commit(event("gpu0"))
    view = stage.feed.current.view
    (condition,) = view.conditions
    since = next(
        each for each in open_metrics(view, 5 * 10**9) if each.name == "nodeagent_condition_since_seconds"
    )
    assert [(each.labels, each.value) for each in since.samples] == [
        ({"device": "gpu0", "code": "XID_79"}, condition.presence.opened_ns / 1e9 + 5)
    ]


def test_a_verdict_shows_since_when_where_that_is_known() -> None:
    known, unknown = replace(NODE_DEVICE, verdict_since_ns=3 * 10**9), replace(NODE_DEVICE, name="npu0")
    since = verdicts_since(View(devices=(known, unknown)), 5 * 10**9)
    assert [(each.labels, each.value) for each in since.samples] == [({"device": "node", "kind": "host"}, 8)]


def test_a_worker_shows_what_it_costs_and_one_that_is_gone_has_no_series(tmp_path: Path) -> None:
    fields = ["S", *("0" for _ in range(10)), "150", "50", *("0" for _ in range(8)), "25", "0"]
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text(f"7 (a ) name) {' '.join(fields)}\n")
    sources = (
        SourceHealth(source="ascend", state="ready", pid=7),
        SourceHealth(source="nvidia", state="ready", pid=8),
    )
    cpu, memory = worker_metrics(Health(sources=sources), tmp_path)
    assert [(each.labels["source"], each.value) for each in cpu.samples] == [
        ("ascend", 200 / os.sysconf("SC_CLK_TCK"))
    ]
    assert [each.value for each in memory.samples] == [25 * os.sysconf("SC_PAGE_SIZE")]


async def test_conditions_are_counted_by_device_and_code_and_go_when_they_are_cleared(
    stage: Stage, served: MetricsServer
) -> None:
    await stage.commit(event("gpu0"))
    open_one = series(
        "nodeagent_conditions", device="gpu0", code="XID_79", level="SeparateNPU", injected="false"
    )
    assert (await asyncio.to_thread(scrape, served))[open_one] == 1
    await stage.commit(event("gpu0", Level.NOT_HANDLE, EventKind.CLEARED))
    assert open_one not in await asyncio.to_thread(scrape, served)


async def test_events_are_counted_by_kind(stage: Stage, served: MetricsServer) -> None:
    await stage.commit(event(), event(), event("gpu0", Level.NOT_HANDLE, EventKind.CLEARED))
    raised = series("nodeagent_events_total", kind="raised")
    await until(lambda: scrape(served)[raised] > 0)
    samples = scrape(served)
    assert samples[raised] == 2
    assert samples[series("nodeagent_events_total", kind="cleared")] == 1
    assert samples[series("nodeagent_last_event_number")] == 3


async def test_faults_by_codes_that_no_table_names_are_counted_by_source(
    stage: Stage, served: MetricsServer
) -> None:
    unknown = replace(event(), unknown=True, source="ascend")
    await stage.commit(event(), unknown, replace(unknown, kind=EventKind.CLEARED))
    counted = series("nodeagent_unknown_codes_total", source="ascend")
    await until(lambda: counted in scrape(served))
    assert {key: value for key, value in scrape(served).items() if key[0] == counted[0]} == {counted: 1}


def test_a_source_that_was_never_read_or_was_lost_is_not_up() -> None:
    read, never_read = Source(name="kmsg"), Source(name="ascend", unread=True)
    lost = Source(name="nvidia", lost_ns=5)

    up = next(source_metrics(View(sources=(read, never_read, lost)), Health()))

    assert {sample.labels["source"]: sample.value for sample in up.samples} == {
        "kmsg": 1,
        "ascend": 0,
        "nvidia": 0,
    }


async def test_the_daemon_tells_how_it_does_itself(stage: Stage, served: MetricsServer) -> None:
    await stage.commit(event())
    samples = await asyncio.to_thread(scrape, served)
    expected = {
        series("nodeagent_queue_depth"): 3,
        series("nodeagent_inputs_total"): 17,
        series("nodeagent_commit_duration_seconds_count"): 4,
        series("nodeagent_commit_duration_seconds_sum"): 0.5,
        series("nodeagent_store_durable"): 1,
        series("nodeagent_store_degraded"): 0,
        series("nodeagent_store_volatile"): 1,
        series("nodeagent_source_up", source="kmsg", required="true"): 1,
        series("nodeagent_source_poll_duration_seconds", source="kmsg"): 0.25,
        series("nodeagent_source_poll_success", source="kmsg"): 1,
        series("nodeagent_source_restarts_total", source="kmsg"): 2,
        series("nodeagent_source_polls_total", source="kmsg"): 40,
        series("nodeagent_source_poll_failures_total", source="kmsg"): 3,
        series("nodeagent_source_late_devices", source="kmsg"): 1,
        series("nodeagent_source_abandoned_workers", source="kmsg"): 1,
        series("nodeagent_source_garbled_total", source="kmsg"): 5,
        series("nodeagent_store_dropped_total", what="events"): 11,
        series("nodeagent_store_dropped_total", what="inputs"): 12,
        series("nodeagent_log_gap_records_total", source="kmsg"): 7,
        series("nodeagent_source_chips", source="ascend"): 8,
        series("nodeagent_source_chips", source="nvidia"): 7,
        series("nodeagent_source_expected_chips", source="nvidia"): 8,
        series("nodeagent_catalog_info", digest="cafe"): 1,
        series("nodeagent_build_info", version="0.1.0", node="rack7-node3", node_id=FACTS.node_id): 1,
    }
    assert {name: samples[name] for name in expected} == expected
    assert series("nodeagent_source_chips", source="kmsg") not in samples
    assert series("nodeagent_source_expected_chips", source="ascend") not in samples


async def test_a_consumers_lag_is_what_it_has_not_acknowledged(stage: Stage) -> None:
    await stage.commit(event(), event(), event())
    await stage.ledger.ack("scheduler", "unix", stage.ledger.store_id, 1)
    metrics = NodeMetrics(feed=stage.feed, ledger=stage.ledger, facts=FACTS, health=lambda: HEALTH)
    counting = asyncio.create_task(metrics.run(after_seq=3))

    def lag() -> list[tuple[dict[str, str], float]]:
        return [
            (sample.labels, sample.value)
            for family in metrics.collect()
            for sample in family.samples
            if family.name == "nodeagent_consumer_lag_events"
        ]

    await until(lambda: bool(lag()))
    assert lag() == [({"consumer": "scheduler"}, 2)]
    counting.cancel()


async def test_a_scrape_is_answered_while_the_loop_is_busy(served: MetricsServer) -> None:
    samples = scrape(served)  # called in the loop, which stands still until it is answered
    assert samples[series("nodeagent_queue_depth")] == 3


async def test_what_other_systems_report_is_counted_by_sender(served: MetricsServer) -> None:
    found = await asyncio.to_thread(scrape, served)
    name = "nodeagent_public_messages_total"
    assert found[name, frozenset({("sender", "CCAE"), ("result", "accepted")})] == 3
    assert found[name, frozenset({("sender", "(unknown)"), ("result", "invalid_argument")})] == 2
    faults = "nodeagent_public_faults_total", frozenset({("sender", "CCAE"), ("outcome", "taken")})
    assert found[faults] == 250
