"""ReloadTables: what an operator sees of sound tables, of refused ones, and what the audit log keeps."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nodeagent.api.control.tables import Reloaded, TablesRefused
from nodeagent.client import ClientError
from nodeagent.core.model import Handling, Level, Verdict
from nodeagent.core.preview import LevelChange, Preview, StanceChange
from nodeagent.messages.pb import control_service_pb2 as pb
from nodeagent.messages.pb import types_pb2
from tests.api.stage import FACTS, Stage

PREVIEW = Preview(
    levels=(
        LevelChange(id="g/XID_79#1", device="gpu0", code="XID_79", before=Level.SEPARATE_NPU, after=None),
        LevelChange(
            id="g/XID_48#1",
            device="gpu0",
            code="XID_48",
            before=Level.RESTART_NPU,
            after=Level.SUB_HEALTH,
        ),
    ),
    devices=(
        StanceChange(
            device="gpu0",
            before=(Verdict.ISOLATE, Handling.RESCHEDULE),
            after=(Verdict.ALLOW, Handling.JOB_STRATEGY),
        ),
    ),
)


class Tables:
    """Stands for the daemon's; ``wrong`` are the lines with which it refuses, ``bug`` what it may raise.

    It goes on once ``may_go_on`` is set.
    """

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.bug = ""
        self.asked: list[bool] = []
        self.begun, self.may_go_on = asyncio.Event(), asyncio.Event()
        self.may_go_on.set()

    async def reload(self, dry_run: bool) -> Reloaded:
        self.asked.append(dry_run)
        self.begun.set()
        await self.may_go_on.wait()
        if self.bug:
            raise RuntimeError(self.bug)
        if self.wrong:
            raise TablesRefused("\n".join(self.wrong))
        return Reloaded(digest="d1", warnings=("odd",), preview=PREVIEW)


@pytest.fixture
def tables() -> Tables:
    return Tables()


@pytest.fixture
async def reloading(tmp_path: Path, tables: Tables) -> AsyncIterator[Stage]:
    stage = Stage(tmp_path, reload=tables.reload)
    await stage.open()
    yield stage
    await stage.close()


async def audited(stage: Stage) -> list[tuple[str, str, str]]:
    return [(row[3], row[4], row[5]) for row in await stage.ledger.read_audit()]


async def test_sound_tables_are_reported_with_what_they_change(reloading: Stage, tables: Tables) -> None:
    async with reloading.operator() as operator:
        response = await operator.call(pb.ReloadTablesRequest(dry_run=True))
        await operator.call(pb.ReloadTablesRequest())
    assert tables.asked == [True, False]
    assert (response.node.node_id, response.catalog_digest, list(response.warnings)) == (
        FACTS.node_id,
        "d1",
        ["odd"],
    )
    ended, changed = response.levels
    assert (ended.before, ended.after) == (types_pb2.LEVEL_SEPARATE_NPU, types_pb2.LEVEL_UNSPECIFIED)
    assert (changed.device, changed.after) == ("gpu0", types_pb2.LEVEL_SUB_HEALTH_FAULT)
    (device,) = response.devices
    assert (device.verdict_before, device.handling_before, device.verdict, device.handling) == (
        types_pb2.VERDICT_ISOLATE,
        types_pb2.HANDLING_RESCHEDULE,
        types_pb2.VERDICT_ALLOW,
        types_pb2.HANDLING_JOB_STRATEGY,
    )
    assert await audited(reloading) == [
        ("ReloadTables", "dry run", "would change: d1"),
        ("ReloadTables", "", "in force: d1"),
    ]


async def test_refused_tables_are_a_failed_precondition_with_every_line(
    reloading: Stage, tables: Tables
) -> None:
    tables.wrong = ["site/a.toml:3: codes.X.level: no level", "site/b.toml:9: regex: not one"]
    async with reloading.operator() as operator:
        with pytest.raises(ClientError) as refused:
            await operator.call(pb.ReloadTablesRequest())
    assert refused.value.status == "FAILED_PRECONDITION"
    assert refused.value.reason.splitlines() == tables.wrong
    assert (await audited(reloading))[0][2].startswith("refused: site/a.toml:3")


async def test_of_very_many_lines_as_many_are_reported_as_a_status_takes(
    reloading: Stage, tables: Tables
) -> None:
    tables.wrong = [f"site/a.toml:{line}: " + "é" * 100 for line in range(1000)]
    async with reloading.operator() as operator:
        with pytest.raises(ClientError) as refused:
            await operator.call(pb.ReloadTablesRequest())
    *shown, more = refused.value.reason.splitlines()
    assert shown == tables.wrong[: len(shown)]
    assert more == f'and {1000 - len(shown)} more; "nodeagent tables check" shows them all'


async def test_readers_may_not_reload(reloading: Stage, tables: Tables) -> None:
    async with reloading.client() as reader:
        with pytest.raises(ClientError) as refused:
            await reader.call(pb.ReloadTablesRequest())
    assert (refused.value.status, tables.asked) == ("PERMISSION_DENIED", [])


async def test_what_a_caller_who_has_gone_had_ordered_is_audited(reloading: Stage, tables: Tables) -> None:
    tables.may_go_on.clear()
    async with reloading.operator() as operator:
        order = asyncio.create_task(operator.call(pb.ReloadTablesRequest()))
        await tables.begun.wait()
        order.cancel()
        with pytest.raises(asyncio.CancelledError):
            await order
        await operator.devices()
        tables.may_go_on.set()
        await operator.call(pb.ReloadTablesRequest(dry_run=True))
    assert await audited(reloading) == [
        ("ReloadTables", "", "in force: d1"),
        ("ReloadTables", "dry run", "would change: d1"),
    ]


async def test_an_order_that_fails_by_our_own_fault_is_audited(reloading: Stage, tables: Tables) -> None:
    tables.bug = "a bug"
    async with reloading.operator() as operator:
        with pytest.raises(ClientError):
            await operator.call(pb.ReloadTablesRequest())
    assert await audited(reloading) == [("ReloadTables", "", "failed: RuntimeError: a bug")]
