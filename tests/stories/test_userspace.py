"""Lines that user space wrote to the kernel log, which any privileged container can forge."""

from nodeagent.client import EventKind, Verdict
from tests.harness.kernel_log import FakeKernelLog
from tests.stories.conftest import Follow, Launch

USER = 1
"""The facility that the kernel gives to what user space writes."""


async def test_a_forged_line_is_a_notice_and_changes_no_verdict(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog
) -> None:
    daemon = launch(fake_log)
    subscriber = await follow(daemon)
    fake_log.say("a", "BOOT", facility=USER)
    notice = await subscriber.event(EventKind.NOTICE, "BOOT")
    forged = await daemon.status()
    fake_log.say("a", "BOOT")
    real = await subscriber.raised("BOOT")

    assert (notice.userspace, notice.device, notice.condition_id, notice.verdict) == (
        True,
        "node",
        "",
        Verdict.ALLOW,
    )
    assert notice.why == "written to the kernel log by user space, which may forge any line; it names a"
    assert forged["conditions"] == []
    assert {each["verdict"] for each in forged["devices"]} == {"ALLOW"}
    assert (real.userspace, real.verdict) == (False, Verdict.NO_NEW_JOBS)


async def test_a_forged_line_beside_a_real_one_neither_renews_nor_counts(
    launch: Launch, follow: Follow, fake_log: FakeKernelLog
) -> None:
    daemon = launch(fake_log)
    subscriber = await follow(daemon)
    fake_log.say("a", "BOOT")
    await subscriber.raised("BOOT")
    fake_log.say("a", "BOOT", facility=USER)
    notice = await subscriber.event(EventKind.NOTICE, "BOOT")

    (condition,) = (await daemon.status())["conditions"]
    assert (notice.device, condition["device"], condition["count"]) == ("a", "a", 1)
