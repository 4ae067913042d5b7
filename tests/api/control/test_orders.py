"""What callers who quiesce, resume, isolate and release are answered: the core's own answer."""

import pytest
from google.protobuf.message import Message

from nodeagent.api.access.credentials import Caller, Role
from nodeagent.api.control import orders
from nodeagent.api.control.context import CallResult, Context
from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.engine import Engine
from nodeagent.core.model import Input, Started
from nodeagent.messages.pb import control_service_pb2 as pb
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.records import Publication, StoreId, Taken
from tests.api import samples
from tests.api.stage import FACTS
from tests.core.build import begin, catalog, ns

CALLER = Caller(identity="uid:0", role=Role.OPERATOR, who="uid 0 pid 7")


async def execute(method: str, context: Context, caller: Caller, request: Message) -> CallResult:
    return await orders.execute(orders.METHODS[method], context, caller, request)


class Node:
    """A core, stepped and published as the daemon does it."""

    def __init__(self) -> None:
        self.engine: Engine = begin(catalog())
        self.feed = EventFeed()
        self._publish()
        self.context = Context(
            feed=self.feed,
            catalog=lambda: samples.CATALOG,
            facts=FACTS,
            ask=self.ask,
            dry_run_reset=self.engine.dry_run_reset,
        )

    async def ask(self, *inputs: Input) -> Taken:
        outcomes = [self.engine.step(ns(1), given) for given in inputs]
        self._publish()
        return Taken(events=outcomes[-1].events, answer=outcomes[-1].answer)

    async def quiesced(self, owner: str, reason: str = "driver upgrade") -> str:
        request = pb.QuiesceRequest(owner=owner, reason=reason)
        done = await execute("Quiesce", self.context, CALLER, request)
        assert isinstance(done.message, pb.QuiesceResponse)
        return done.message.hold.id

    def _publish(self) -> None:
        self.feed.publish(
            Publication(
                view=self.engine.view(),
                store_id=StoreId(uuid="s", epoch=1),
                seq=1,
                durable=True,
                wall_offset_ns=0,
            )
        )


@pytest.fixture
def node() -> Node:
    return Node()


async def test_a_quiesce_is_answered_with_its_end_and_its_id(node: Node) -> None:
    done = await execute(
        "Quiesce", node.context, CALLER, pb.QuiesceRequest(owner="alice", reason="driver upgrade")
    )
    assert isinstance(done.message, pb.QuiesceResponse)
    assert (done.message.hold.id, done.message.hold.owner) == ("slot:node/quiesce:alice#1", "alice")
    assert done.result == "quiesced until resumed: driver upgrade"
    assert done.taken is not None


async def test_a_resume_without_an_own_quiesce_names_the_owner_of_the_other(node: Node) -> None:
    theirs = await node.quiesced("bob")
    with pytest.raises(Refusal) as refused:
        await execute("Resume", node.context, CALLER, pb.ResumeRequest(owner="alice"))
    assert refused.value.status is Status.FAILED_PRECONDITION
    assert refused.value.reason.startswith(
        f"this node is quiesced by bob (driver upgrade), id {theirs}; alice "
    )


async def test_a_resume_is_answered_with_the_quiesces_that_stay(node: Node) -> None:
    await node.quiesced("bob")
    mine = await node.quiesced("alice")
    done = await execute("Resume", node.context, CALLER, pb.ResumeRequest(owner="alice", reason="done"))
    assert isinstance(done.message, pb.ResumeResponse)
    assert [(hold.owner, hold.reason) for hold in done.message.others] == [("bob", "driver upgrade")]
    assert list(done.message.resumed) == [mine]
    assert done.result == f"resumed {mine}: done"


async def test_a_hold_beyond_the_limit_is_refused(node: Node) -> None:
    for number in range(16):
        await node.quiesced("alice", reason=f"run {number}")
    with pytest.raises(Refusal) as refused:
        await node.quiesced("alice")
    assert refused.value.status is Status.RESOURCE_EXHAUSTED
    assert refused.value.reason == "alice holds node for 16 reasons already; release some first"


async def test_a_hold_that_has_ended_already_is_refused(node: Node) -> None:
    """Its end lies in the future by what was published, and not by the clock of the order."""
    request = pb.IsolateDeviceRequest(device="npu0", reason="bench")
    request.until.FromNanoseconds(ns(0.5))
    with pytest.raises(Refusal) as refused:
        await execute("IsolateDevice", node.context, CALLER, request)
    assert refused.value.reason == "the hold has ended already"


async def test_a_release_shows_what_it_ended_and_whose_holds_stay(node: Node) -> None:
    for owner in ("alice", "bob"):
        order = pb.IsolateDeviceRequest(device="npu0", owner=owner, reason="fan swap")
        await execute("IsolateDevice", node.context, CALLER, order)
    request = pb.ReleaseDeviceRequest(device="npu0", owner="alice", reason="done", force=False)
    done = await execute("ReleaseDevice", node.context, CALLER, request)
    assert isinstance(done.message, pb.ReleaseDeviceResponse)
    (released,) = done.message.released
    assert [hold.owner for hold in done.message.others] == ["bob"]
    assert done.result == f"released {released}: done"


async def test_what_is_not_known_to_the_core_has_no_answer_and_is_a_bug(node: Node) -> None:
    async def unanswered(*_inputs: Input) -> Taken:
        return await node.ask(Started(boot_id="b", version="1"))

    node.context = Context(
        feed=node.feed,
        catalog=node.context.catalog,
        facts=FACTS,
        ask=unanswered,
        dry_run_reset=node.context.dry_run_reset,
    )
    with pytest.raises(AssertionError, match="does not answer 'quiesce'"):
        await node.quiesced("alice")


@pytest.mark.parametrize("owner", ["uid:0", "a b", "a/b", "a#1", "nodeagent", "x" * 65, "\n", " "])
async def test_a_name_that_no_one_may_have_is_refused(node: Node, owner: str) -> None:
    with pytest.raises(Refusal) as refused:
        await node.quiesced(owner)
    assert refused.value.status is Status.INVALID_ARGUMENT
    assert refused.value.reason.startswith("owner: 1 to 64 printable characters without spaces")
