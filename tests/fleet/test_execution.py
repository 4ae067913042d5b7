"""The command of --exec: real programs, in order, bounded, tried again, and ended with the follower."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nodeagent.client import Verdict
from nodeagent.fleet.delivery import ATTEMPTS, Execution
from nodeagent.fleet.news import News, What
from tests.daemon.staged import is_alive
from tests.fleet.given import AT, answering, event, position
from tests.waiting import until, wait_until

LINE = b'{"node":"gpu-17"}\n'


def news(seq: int, node: str = "gpu-17") -> News:
    return News(
        what=What.EVENT,
        node=answering(node),
        at=datetime.now(UTC),
        value=event(seq, "gpu0", Verdict.ISOLATE, codes=("XID_79",)),
        position=position(seq),
    )


def script(folder: Path, text: str) -> list[str]:
    path = folder / "script"
    path.write_text(f"#!/bin/sh\ncd {folder}\n{text}\n")
    path.chmod(0o755)
    return [str(path)]


def execution(command: Sequence[str], *, at_once: int = 2, limit_s: float = 60.0) -> Execution:
    return Execution(command, at_once=at_once, limit_s=limit_s, first_pause_s=0.001)


async def test_it_gets_the_line_on_its_input_and_the_most_important_in_its_environment(
    tmp_path: Path,
) -> None:
    command = script(
        tmp_path,
        'cat > line; echo "$NODEAGENT_NODE $NODEAGENT_WHAT $NODEAGENT_SEQ $NODEAGENT_KIND $NODEAGENT_DEVICE'
        ' $NODEAGENT_CODE $NODEAGENT_VERDICT $NODEAGENT_HANDLING" > words',
    )
    await execution(command).run(news(7), LINE)
    assert (tmp_path / "line").read_bytes() == LINE
    assert (tmp_path / "words").read_text() == "gpu-17 event 7 raised gpu0 XID_79 ISOLATE NONE\n"


async def test_of_a_whole_state_it_gets_the_verdict_of_the_node(tmp_path: Path) -> None:
    command = script(tmp_path, 'echo "$NODEAGENT_WHAT $NODEAGENT_VERDICT [$NODEAGENT_SEQ]" > words')
    await execution(command).run(News(what=What.STATE, node=answering(), at=AT, position=position(7)), LINE)
    assert (tmp_path / "words").read_text() == "state UNKNOWN []\n"


async def test_a_name_with_a_zero_byte_ends_nothing(tmp_path: Path) -> None:
    odd = News(what=What.EVENT, node=answering(), at=AT, value=event(7, "gpu\0zero"), position=position(7))
    await execution(script(tmp_path, 'echo "$NODEAGENT_DEVICE" > words')).run(odd, LINE)
    assert (tmp_path / "words").read_text() == "gpuzero\n"


async def test_a_program_that_does_not_read_its_input_is_no_failure(tmp_path: Path) -> None:
    await execution(script(tmp_path, "exec <&-; touch done")).run(news(7), LINE * 100_000)
    assert (tmp_path / "done").exists()


async def test_a_failure_is_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    command = script(tmp_path, "echo x >> runs; test $(wc -l < runs) -ge 3 || exit 4")
    await execution(command).run(news(7), LINE)
    assert (tmp_path / "runs").read_text() == "x\n" * 3
    assert [record.message for record in caplog.records] == [
        "gpu-17: --exec for event 7 ended with status 4; again in 0.001 s",
        "gpu-17: --exec for event 7 ended with status 4; again in 0.002 s",
    ]


async def test_one_that_fails_each_time_is_left_behind_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await execution(script(tmp_path, "echo x >> runs; kill -9 $$")).run(news(7), LINE)
    assert (tmp_path / "runs").read_text() == "x\n" * ATTEMPTS
    assert caplog.records[-1].message == (
        "gpu-17: --exec for event 7 was ended by signal 9; given up after 5 attempts"
    )


async def test_a_program_that_is_gone_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await execution([str(tmp_path / "gone")]).run(news(7), LINE)
    assert caplog.records[-1].message.startswith(
        "gpu-17: --exec for event 7 could not be started: [Errno 2] No such file or directory"
    )


async def test_one_that_takes_too_long_is_ended_with_its_children(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    command = script(tmp_path, "test -e child && exit 0\nsleep 600 &\necho $! > child\nwait")
    await execution(command, limit_s=0.5).run(news(7), LINE)
    assert caplog.records[0].message.startswith(
        "gpu-17: --exec for event 7 took longer than 0.5 s and was ended"
    )
    await until(lambda: not is_alive(int((tmp_path / "child").read_text())), "the child's end")


async def test_the_follower_ends_and_its_commands_with_it(tmp_path: Path) -> None:
    command = script(tmp_path, "sleep 600 &\necho $! > child.new; mv child.new child\nwait")
    running = asyncio.create_task(execution(command).run(news(7), LINE))
    await until((tmp_path / "child").exists, "the child")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: not is_alive(int((tmp_path / "child").read_text())), "the child's end")


async def test_the_follower_ends_while_a_command_is_being_started(tmp_path: Path) -> None:
    """The command is at work already, and the loop has not come round to noticing it."""
    command = script(tmp_path, "sleep 600 &\necho $! > child.new; mv child.new child\nwait")
    running = asyncio.create_task(execution(command).run(news(7), LINE))
    before = _children()
    while _children() == before:  # noqa: ASYNC110 # it ends at the round in which the process is there
        await asyncio.sleep(0)
    wait_until((tmp_path / "child").exists, "the child")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: not is_alive(int((tmp_path / "child").read_text())), "the child's end")


async def test_a_child_that_ignores_the_request_to_end_is_not_left_behind(tmp_path: Path) -> None:
    command = script(
        tmp_path,
        "test -e child && exit 0\nsh -c 'trap \"\" TERM; echo $$ > child; sleep 600' &\n"
        "until test -s child; do sleep 0.01; done\nwait",
    )
    await execution(command, limit_s=0.5).run(news(7), LINE)
    await until(lambda: not is_alive(int((tmp_path / "child").read_text())), "the child's end")


async def test_the_follower_ends_while_a_command_is_being_ended(tmp_path: Path) -> None:
    command = script(tmp_path, 'trap "echo > asked" TERM; echo $$ > leader; while :; do sleep 0.01; done')
    running = asyncio.create_task(execution(command, limit_s=0.5).run(news(7), LINE))
    await until((tmp_path / "asked").exists, "that it is asked to end")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: not is_alive(int((tmp_path / "leader").read_text())), "its end")


async def test_no_more_run_at_once_than_allowed(tmp_path: Path) -> None:
    """Each waits until it sees two at work, and none ever sees a third."""
    command = script(
        tmp_path,
        "touch at-$$; ls -d at-* | wc -l >> seen\n"
        "until test -e go; do sleep 0.01; done\n"
        "ls -d at-* | wc -l >> seen; rm at-$$",
    )
    allowed = execution(command, at_once=2)
    running = [asyncio.create_task(allowed.run(news(1, f"gpu-{number}"), LINE)) for number in range(6)]
    await until(lambda: len(list(tmp_path.glob("at-*"))) == 2, "two at work")
    (tmp_path / "go").touch()
    await asyncio.gather(*running)
    seen = [int(line) for line in (tmp_path / "seen").read_text().split()]
    assert (len(seen), max(seen)) == (12, 2)


def _children() -> str:
    return Path("/proc/thread-self/children").read_text()
