"""What the kernel logged before the daemon came, in this boot and over a reboot."""

from pathlib import Path
from uuid import uuid4

import pytest

from nodeagent.client import EventKind
from tests.harness.kernel_log import FakeKernelLog, RealKernelLog
from tests.harness.subscriber import without_gap
from tests.stories.conftest import Follow, Launch


@pytest.mark.root
async def test_story_02_lines_from_before_the_first_start_are_told_once_and_not_by_a_later_start(
    launch: Launch, follow: Follow, real_log: RealKernelLog
) -> None:
    daemon = launch(real_log)
    for number in range(5):
        real_log.say("a", f"LASTING_{number}")
    real_log.say("a", "LASTING_0")
    subscriber = await follow(daemon)
    real_log.say("b", "LASTING_5")
    await subscriber.raised("LASTING_5")
    before = await daemon.status()

    await daemon.restart()
    await subscriber.follow()
    real_log.say("b", "LASTING_6")
    await subscriber.raised("LASTING_6")

    after = await daemon.status()
    assert {each["code"]: each["count"] for each in after["conditions"]} == {
        "LASTING_0": 2,
        **{f"LASTING_{number}": 1 for number in range(1, 7)},
    }
    since = [(event.kind, event.code) for event in subscriber.events if event.seq > before["seq"]]
    assert since == [(EventKind.STARTED, ""), (EventKind.RAISED, "LASTING_6")]


@pytest.mark.root
async def test_story_02_after_a_reboot_each_line_is_told_once_and_what_is_not_shown_again_is_over(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog, tmp_path: Path
) -> None:
    boot_id = tmp_path / "boot_id"
    boot_id.write_text(f"{uuid4()}\n")
    daemon = launch(fake_log, boot_id=boot_id)
    subscriber = await follow(daemon)
    for device, code in (("a", "BOOT"), ("b", "BOOT"), ("b", "LASTING_1")):
        fake_log.say(device, code)
    await subscriber.raised("LASTING_1")
    assert await daemon.stop() == 0

    boot_id.write_text(f"{uuid4()}\n")
    for seq, (device, code) in enumerate((("b", "BOOT"), ("c", "BOOT"))):
        fake_log.offer(seq, device, code)
    await daemon.start()
    await subscriber.follow()
    cleared = await subscriber.cleared("BOOT")
    await subscriber.raised("BOOT", "c")
    status = await daemon.status()

    assert (cleared.device, cleared.why) == ("a", "not shown again since the reboot")
    raised = [(event.device, event.code) for event in subscriber.of(EventKind.RAISED)]
    assert raised == [("a", "BOOT"), ("b", "BOOT"), ("b", "LASTING_1"), ("c", "BOOT")]
    assert len(subscriber.of(EventKind.CLEARED)) == 1
    assert {(each["device"], each["code"], each["count"]) for each in status["conditions"]} == {
        ("b", "BOOT", 2),
        ("b", "LASTING_1", 1),
        ("c", "BOOT", 1),
    }
    assert status["node"]["boot_id"].replace("-", "") == boot_id.read_text().strip().replace("-", "")

    assert await daemon.stop() == 0
    for seq, (device, code) in enumerate((("b", "BOOT"), ("c", "BOOT"))):
        fake_log.offer(seq, device, code)
    fake_log.offer(2, "d", "BOOT")
    await daemon.start()
    await subscriber.follow()
    await subscriber.raised("BOOT", "d")
    assert [event.device for event in subscriber.of(EventKind.RAISED)] == ["a", "b", "b", "c", "d"]
    assert len(subscriber.of(EventKind.CLEARED)) == 1
    assert without_gap(subscriber.events)
