"""What a worker says of a part while it is well goes to the core once, and to the next worker."""

from nodeagent.core.model import BaselineSeen, Kind
from nodeagent.daemon.sources.baselines import KeptBaselines
from nodeagent.wire import Baseline, Device, Reply

UUID = "GPU-1"
LISTED = [Device(device="gpu0", kind=Kind.CHIP, vendor="nvidia", identity=UUID)]


def reply(content: str, number: int = 0, identity: str = UUID) -> Reply:
    return Reply(
        id=1,
        device="gpu0",
        begun_ns=1,
        took_ns=1,
        identity=identity,
        baseline=Baseline(number=number, content=content),
    )


def test_what_is_said_again_is_no_news() -> None:
    kept: dict[str, Baseline] = {}
    baselines = KeptBaselines("nvidia", kept)
    seen = BaselineSeen(source="nvidia", identity=UUID, number=0, content="well")
    assert baselines.take(reply("well"), LISTED) == [seen]
    assert baselines.take(reply("well"), LISTED) == []
    assert kept == {UUID: Baseline(number=0, content="well")}


def test_one_of_a_part_that_is_not_listed_waits_until_it_is() -> None:
    baselines = KeptBaselines("nvidia", {})
    assert baselines.take(reply("well"), []) == []
    assert len(baselines.take(reply("well"), LISTED)) == 1


def test_a_reply_without_one_changes_nothing() -> None:
    kept = {UUID: Baseline(content="well")}
    assert KeptBaselines("nvidia", kept).take(Reply(id=1, device="gpu0", begun_ns=1, took_ns=1), LISTED) == []
    assert KeptBaselines("nvidia", kept).take(reply(""), LISTED) == []
    assert kept == {UUID: Baseline(content="well")}


def test_after_an_order_to_begin_anew_only_a_worker_that_knows_of_it_is_heard() -> None:
    kept = {UUID: Baseline(content="well")}
    baselines = KeptBaselines("nvidia", kept)
    assert baselines.restart(UUID, 1)
    assert not baselines.restart(UUID, 1)
    assert baselines.take(reply("well"), LISTED) == []
    assert kept == {UUID: Baseline(number=1)}
    assert len(baselines.take(reply("as it is", number=1), LISTED)) == 1
