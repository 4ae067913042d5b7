"""A store of the version before, as its daemon left it on a node: this one goes on with all of it.

``fixtures/stores/schema-2`` was written by the daemon of version 0.1.0 on 16 emulated NPUs, in mode "ask",
and copied while it ran: isolations with and without an end, a code that its rule has promoted and one that it
has counted half way, a fault that is there too long, a reset that waits for its approval, a fault of another
system, a claim, a job that was run again, and consumers. ``view.json`` is the view as that version had it at
the end.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from nodeagent.core.model import Assertion, Signal
from nodeagent.daemon.rebuild import RebuildResult, load_catalogs, rebuild
from nodeagent.store.disk.opening import read_life
from nodeagent.store.layout import SCHEMA_VERSION
from nodeagent.store.ledger import Ledger
from tests.daemon.former_stores import (
    by_id,
    in_present_terms,
    known_then,
    no_stand_in,
    unpacked,
    view_of_then,
)
from tests.store.samples import PATIENT

FORMER: Final = Path(__file__).parents[1] / "fixtures/stores/schema-2"
HALF_WAY: Final = "npu7"
"""It had a fault once that its rule promotes the second time."""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return unpacked(FORMER, tmp_path)


async def opened(state: Path, machine: str = "") -> tuple[Ledger, RebuildResult]:
    ledger = Ledger(state, machine or row(state, "SELECT machine_id FROM state")[0], limits=PATIENT)
    recovery = await ledger.open()
    return ledger, await rebuild(ledger, recovery, await load_catalogs(ledger, recovery, no_stand_in))


def row(state: Path, query: str) -> Any:
    with closing(sqlite3.connect(state / "store.db")) as connection:
        return connection.execute(query).fetchone()


def the_view_of_then() -> dict[str, Any]:
    view: dict[str, Any] = json.loads((FORMER / "view.json").read_text())
    return view


PARTS: Final = ("devices", "conditions", "promotions", "holds", "resets", "jobs", "sources")


def test_the_store_of_then_holds_what_a_node_has_to_keep() -> None:
    then = the_view_of_then()

    assert {part: len(then[part]) for part in PARTS} == {
        "devices": 17,
        "conditions": 3,
        "promotions": 1,
        "holds": 6,
        "resets": 1,
        "jobs": 2,
        "sources": 1,
    }
    assert then["resets"][0]["stage"] == "asking"


async def test_all_of_it_is_there(state: Path) -> None:
    ledger, rebuilt = await opened(state)

    now, then = view_of_then(rebuilt.engine.view()), the_view_of_then()
    assert (ledger.durable, rebuilt.damages, rebuilt.differences.events) == (True, (), ())
    for part in PARTS:
        assert known_then(by_id(now[part]), by_id(then[part])) == in_present_terms(by_id(then[part])), part
    await ledger.close()


async def test_what_a_rule_has_counted_half_way_is_counted_on(state: Path) -> None:
    ledger, rebuilt = await opened(state)
    again = Signal(
        source="ascend", device=HALF_WAY, code="80E01801", assertion=Assertion.OCCUR, severity=2, evidence={}
    )

    rebuilt.engine.step(rebuilt.engine.now_ns + 1, again)

    view = rebuilt.engine.view()
    names = {device.id: device.name for device in view.devices}
    assert [names[each.device_id] for each in view.promotions] == ["npu4", HALF_WAY]
    await ledger.close()


async def test_consumers_audit_and_history_are_kept_and_the_line_of_numbers_goes_on(state: Path) -> None:
    uuid, epoch, last = row(state, "SELECT uuid, epoch, last_seq FROM state")
    ledger, _ = await opened(state)

    assert (ledger.store_id.uuid, ledger.store_id.epoch, ledger.last_seq) == (uuid, epoch, last)
    assert [(one.name, one.owner, one.seq) for one in ledger.consumers()] == [
        ("scheduler", "uid:0", 57),
        ("slurm", "uid:0", 58),
    ]
    assert [entry[4] for entry in await ledger.read_audit()] == ["npu5", "my-checker", "npu15", "npu13"]
    assert [event.seq for event in await ledger.read_events(0)] == list(range(1, last + 1))
    await ledger.close()


async def test_who_reads_only_the_header_of_the_file_sees_the_schema_at_once(state: Path) -> None:
    """As the scripts of a package do, while the daemon runs."""
    ledger, _ = await opened(state)

    header = (state / "store.db").read_bytes()[:100]

    assert int.from_bytes(header[60:64], "big") == SCHEMA_VERSION
    await ledger.close()


async def test_without_its_header_it_still_gives_back_all_that_keeps_work_away(state: Path) -> None:
    (machine,) = row(state, "SELECT machine_id FROM state")
    with (state / "store.db").open("r+b") as file:
        file.write(bytes(100))

    ledger, rebuilt = await opened(state, machine)

    (damage,) = rebuilt.damages
    assert "how far the store had come" not in damage.lost
    holds = {hold.id for hold in rebuilt.engine.view().holds}
    assert holds == {each["id"] for each in the_view_of_then()["holds"]}
    await ledger.close()


def test_without_a_daemon_it_is_read_as_it_lies(state: Path) -> None:
    before = (state / "store.db").read_bytes()

    life = read_life(state / "store.db")

    assert life.recovery.damages == ()
    assert (state / "store.db").read_bytes() == before
