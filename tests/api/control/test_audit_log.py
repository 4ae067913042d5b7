"""Who fills the audit log: operators by what they do; all others only so far."""

from pathlib import Path

from nodeagent.api.access.credentials import Caller, Role
from nodeagent.api.control.audit import MAX_OF_ONE, AuditLog
from nodeagent.api.refusal import MAX_REFUSALS
from nodeagent.store.ledger import Ledger
from tests.store.samples import MACHINE, PATIENT

ROOT = Caller(identity="uid:0", role=Role.OPERATOR, who="uid 0", is_operator=True)


def reader(uid: int) -> Caller:
    return Caller(identity=f"uid:{uid}", role=Role.READER, who=f"uid {uid}")


async def test_no_one_but_operators_fills_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, MACHINE, limits=PATIENT)
    await ledger.open()
    audit = AuditLog(ledger)
    for number in range(MAX_OF_ONE + 10):
        await audit.note_of(reader(1000), "RewindConsumer", f"mine{number}", "set back")
        await audit.note_of(ROOT, "RewindConsumer", f"theirs{number}", "set back")
    for _ in range(MAX_OF_ONE + 10):
        await audit.note_refusal(reader(1001), "IsolateDevice", "npu0", "not you")
    for uid in range(2000, 2100):
        await audit.note_refusal(reader(uid), "IsolateDevice", "npu0", "not you")
    written = [row[2] for row in await ledger.read_audit()]
    await ledger.close()
    assert written.count("uid 0") == MAX_OF_ONE + 10
    assert written.count("uid 1000") == written.count("uid 1001") == MAX_OF_ONE
    assert len(written) - written.count("uid 0") == MAX_REFUSALS
