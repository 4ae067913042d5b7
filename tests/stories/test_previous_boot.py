"""A node stopped without a shutdown: what its kernel logged at the end is in the events."""

from pathlib import Path
from uuid import uuid4

from nodeagent.client import EventKind
from tests.harness.kernel_log import FakeKernelLog
from tests.journals import Entry, write_journal
from tests.stories.conftest import Launch, Subscribe


async def test_the_last_lines_before_a_crash_are_notices_once(
    launch: Launch, subscribe: Subscribe, fake_log: FakeKernelLog, tmp_path: Path
) -> None:
    crashed, boot = uuid4(), uuid4()
    boot_id = tmp_path / "boot_id"
    boot_id.write_text(f"{boot}\n")
    entries = [
        Entry(boot=crashed.hex, at_s=5000, message=fake_log.line("a", "LASTING_1")),
        Entry(boot=boot.hex, at_s=5100, message=fake_log.line("a", "LASTING_2")),
    ]
    journal = write_journal(tmp_path / "journal", entries)
    daemon = launch(fake_log, boot_id=boot_id, sections=("[drivers.previous_boot]", f'path = "{journal}"'))
    await daemon.start()
    subscriber = subscribe(daemon)
    await subscriber.begin_with_the_first_event()
    await subscriber.follow()

    notice = await subscriber.event(EventKind.NOTICE, "LASTING_1")
    await daemon.comes(lambda: "were read" in daemon.log, "the end of the journal")
    status = await daemon.status()
    await daemon.restart()
    await daemon.comes(lambda: daemon.log.count("were read") == 2, "a second look")
    await subscriber.follow()

    assert (notice.device, notice.source) == ("node", "previous_boot")
    assert notice.why == (
        "logged in the previous boot, which no shutdown ended; nothing is done about it; it names a"
    )
    assert (notice.evidence["boot_id"], notice.evidence["line"]) == (crashed.hex, entries[0].message)
    assert status["conditions"] == []
    assert "previous_boot" not in {each["name"] for each in status["sources"]}
    assert [event.code for event in subscriber.of(EventKind.NOTICE)] == ["LASTING_1"]
