"""What is asked of the process of a reset: bounded, whatever is known of its devices."""

from dataclasses import replace
from pathlib import Path

import msgspec

from nodeagent.config.load import load_config
from nodeagent.core.model import Reason
from nodeagent.daemon.clock import Clock
from nodeagent.daemon.resets.exchange import RequestBuilder, attempt_of
from nodeagent.reset_unit.exchange.requests import MAX_BYTES
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.ledger import Ledger
from nodeagent.store.records import Publication, Transaction
from tests.daemon.resets.test_actuator import action, view
from tests.store.samples import PATIENT, WALL_NS, event

EVENTS = 300
FAULTS = 256


async def test_the_evidence_of_a_device_with_many_faults_leaves_room_for_its_reset(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(f'[agent]\nstate_dir = "{tmp_path}/state"\n')
    ledger = Ledger(tmp_path / "state", "machine", limits=PATIENT)
    await ledger.open()
    all_of_them = tuple(
        Reason(kind="condition", id=f"die0/80E18005#{number}", code="80E18005", text="on-chip memory error")
        for number in range(FAULTS)
    )
    stored = [replace(event(number), device_id="die0", reasons=all_of_them) for number in range(EVENTS)]
    committed = await ledger.commit(Transaction(events=tuple((WALL_NS, each) for each in stored)))
    feed, shown = EventFeed(), view()
    feed.publish(
        Publication(
            view=shown, store_id=committed.store_id, seq=committed.last_seq, durable=True, wall_offset_ns=0
        )
    )
    clock = Clock(boot_id="boot", offset_ns=0)
    requests = RequestBuilder(load_config(tmp_path / "c.toml", {}), clock, feed, ledger)
    request = await requests.request(attempt_of(shown, shown.resets[0]), action(), {})
    assert len(msgspec.json.encode(request)) < MAX_BYTES
    numbers = [int(msgspec.json.decode(each)["event"]["evidence"]["number"]) for each in request.events]
    assert numbers == list(range(EVENTS - len(numbers), EVENTS))
    assert len(numbers) > 10
    await ledger.close()
