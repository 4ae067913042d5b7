"""What the bridge orders: values in, values out, each story with the times at which things happen."""

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nodeagent.client import Position
from nodeagent.schedulers.loop import LoopTick
from nodeagent.schedulers.slurm.decide import (
    SECOND_NS,
    Acknowledge,
    Annotate,
    Drain,
    EffectDone,
    EffectFailed,
    LookAtNode,
    Node,
    NodeReported,
    NodeSeen,
    Requeue,
    Resume,
    SlurmEffect,
    SlurmInput,
    SlurmSettings,
    SlurmState,
    Unsure,
    decide,
    next_deadline,
)
from nodeagent.schedulers.slurm.verdicts import DrainCause, Standing, Verdicts, is_outdated

SETTINGS = SlurmSettings(resume_after_ns=60 * SECOND_NS, look_each_ns=25 * SECOND_NS)
FREE = Node(takes_work=True, is_drained=False)
DOWN = Node(takes_work=False, is_drained=False, reason="Not responding")
OURS = Node(takes_work=False, is_drained=True, reason="NA:80E18005 npu3 (nodeagent #7)")
OF_AN_EARLIER_VERSION = replace(OURS, reason="80E18005 npu3 (nodeagent #7)")
ANOTHERS = Node(takes_work=False, is_drained=True, reason="cable is changed")
FAULT = DrainCause(device="npu3", code="80E18005", rank=(2, 1, 6))
BAD = Verdicts(standing=Standing.BAD, faults=(FAULT,))
MILDER = DrainCause(device="npu1", code="80E01801", rank=(2, 0, 4))
WORSE = DrainCause(device="npu5", code="8C204E00", rank=(2, 1, 10))
HELD = tuple(DrainCause(device=f"npu{number}", code="hold", is_held=True) for number in (0, 1))
WELL = Verdicts(standing=Standing.WELL)
UNKNOWN = Verdicts(standing=Standing.UNKNOWN)


def at(seq: int) -> Position:
    return Position(uuid="u", epoch=1, seq=seq)


def bad(*faults: DrainCause) -> Verdicts:
    return Verdicts(standing=Standing.BAD, faults=faults)


@dataclass
class Story:
    """``slurm`` answers each look; every other order is done at once unless ``fails`` says otherwise."""

    slurm: Node = FREE
    state: SlurmState = field(default_factory=SlurmState)
    now_ns: int = 0
    effects: list[SlurmEffect] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    looks: int = 0
    fails: bool = False
    refused: SlurmEffect | None = None
    unsure: bool = False

    def give(self, given: SlurmInput | LoopTick) -> list[SlurmEffect]:
        """The effects that follow, without looks and comments; all are done."""
        self.effects = []
        while True:
            decision = decide(self.state, given, self.now_ns, SETTINGS)
            self.state = decision.state
            if decision.effect is None:
                return self.effects
            given = self._do(decision.effect)

    def _do(self, order: SlurmEffect) -> SlurmInput:
        if not isinstance(order, LookAtNode | Annotate):
            self.effects.append(order)
        if self.fails or order == self.refused:
            return EffectFailed()
        match order:
            case LookAtNode():
                self.looks += 1
                return NodeSeen(self.slurm)
            case Drain():
                self.slurm = replace(self.slurm, takes_work=False, is_drained=True, reason=order.reason)
            case Annotate():
                self.comments.append(order.comment)
                self.slurm = replace(self.slurm, comment=order.comment)
            case Resume() if self.unsure:
                return Unsure()
            case Resume():
                self.slurm = replace(FREE, comment=self.slurm.comment)
        return EffectDone()

    def reported(self, seq: int, verdicts: Verdicts, *jobs: int) -> list[SlurmEffect]:
        return self.give(NodeReported(at(seq), verdicts, jobs))

    def after(self, seconds: float) -> list[SlurmEffect]:
        """What is ordered until then, by each deadline that comes."""
        end_ns = self.now_ns + int(seconds * SECOND_NS)
        effects: list[SlurmEffect] = []
        while (due_ns := next_deadline(self.state, SETTINGS)) is not None and due_ns <= end_ns:
            self.now_ns = max(self.now_ns, due_ns)
            effects += self.give(LoopTick())
        self.now_ns = end_ns
        return effects


def test_a_bad_node_is_drained_and_then_acknowledged() -> None:
    story = Story()
    assert story.reported(6, WELL) == [Acknowledge(at(6))]
    assert story.reported(7, BAD) == [Drain("NA:80E18005 npu3 (nodeagent #7)"), Acknowledge(at(7))]


def test_further_events_of_a_bad_node_drain_it_no_second_time() -> None:
    story = Story()
    story.reported(7, BAD)
    looks = story.looks
    assert story.reported(8, BAD) == [Acknowledge(at(8))]
    assert story.looks == looks


def test_a_start_finds_its_own_drain_and_drains_no_second_time() -> None:
    assert Story(slurm=OURS).reported(9, BAD) == [Acknowledge(at(9))]


def test_a_start_ends_the_drain_that_an_earlier_life_has_left() -> None:
    story = Story(slurm=OURS)
    assert story.reported(9, WELL) == [Acknowledge(at(9))]
    assert story.after(59) == []
    assert story.after(1) == [Resume()]
    assert story.slurm == FREE


def test_a_worse_fault_gives_the_drain_another_reason_and_a_milder_one_does_not() -> None:
    story = Story()
    story.reported(7, BAD)
    assert story.reported(8, bad(FAULT, MILDER)) == [Acknowledge(at(8))]
    assert story.reported(9, bad(WORSE, FAULT, MILDER)) == [
        Drain("NA:8C204E00 npu5 +2 (nodeagent #7)"),
        Acknowledge(at(9)),
    ]
    assert story.reported(10, bad(WORSE, FAULT)) == [Acknowledge(at(10))]


def test_when_the_fault_of_the_reason_is_over_another_one_is_named() -> None:
    story = Story()
    story.reported(7, bad(FAULT, MILDER))
    assert story.reported(8, bad(MILDER))[0] == Drain("NA:80E01801 npu1 (nodeagent #7)")


def test_while_a_reset_is_proved_the_reason_names_the_fault_that_asked_for_it() -> None:
    story = Story()
    story.reported(7, bad(FAULT, *HELD))
    assert story.reported(8, bad(*HELD)) == [Acknowledge(at(8))]
    assert story.slurm.reason == "NA:80E18005 npu3 (nodeagent #7)"


def test_no_other_reason_is_given_to_a_drain_that_a_person_took_over_since_the_last_look() -> None:
    story = Story()
    story.reported(7, BAD)
    story.slurm = ANOTHERS
    story.now_ns += 2 * SECOND_NS
    assert story.reported(8, bad(WORSE, FAULT)) == [Acknowledge(at(8))]
    assert story.slurm == ANOTHERS


def test_the_comment_lists_every_device_while_the_drain_is_ours_and_nothing_after() -> None:
    story = Story()
    story.reported(7, bad(FAULT, MILDER, *HELD))
    shown = "nodeagent: 80E18005 npu3, 80E01801 npu1, held for a reset: npu0 npu1"
    assert story.comments == [shown]
    story.reported(8, WELL)
    assert story.comments == [shown]
    story.after(60)
    assert story.comments == [shown, ""]
    story.after(10_000)
    assert story.comments == [shown, ""]


def test_the_comment_of_a_person_is_not_replaced_and_a_node_of_anothers_drain_gets_none() -> None:
    for node in (replace(FREE, comment="rack 7, do not touch"), ANOTHERS):
        story = Story(slurm=node)
        story.reported(7, BAD)
        story.reported(8, WELL)
        story.after(10_000)
        assert story.comments == []


def test_a_drain_of_an_earlier_version_is_ended_and_its_reason_is_not_changed() -> None:
    story = Story(slurm=OF_AN_EARLIER_VERSION)
    assert story.reported(7, BAD) == [Acknowledge(at(7))]
    story.reported(8, WELL)
    assert story.after(60) == [Resume()]


def test_a_drain_of_another_is_left_alone_in_health_and_sickness() -> None:
    story = Story(slurm=ANOTHERS)
    assert story.reported(7, BAD) == [Acknowledge(at(7))]
    assert story.reported(8, WELL) == [Acknowledge(at(8))]
    assert story.after(10_000) == []
    assert story.slurm == ANOTHERS


def test_once_another_has_resumed_a_bad_node_it_is_drained() -> None:
    story = Story(slurm=ANOTHERS)
    story.reported(7, BAD)
    story.slurm = FREE
    assert story.after(30) == [Drain("NA:80E18005 npu3 (nodeagent #7)")]


def test_a_person_who_writes_another_reason_has_taken_the_node_over() -> None:
    story = Story()
    story.reported(7, BAD)
    story.slurm = ANOTHERS
    story.reported(8, WELL)
    assert story.after(10_000) == []
    assert story.slurm == ANOTHERS


def test_a_node_that_is_down_is_drained_when_it_comes_back() -> None:
    story = Story(slurm=DOWN)
    assert story.reported(7, BAD) == [Acknowledge(at(7))]
    story.slurm = FREE
    assert story.after(30) == [Drain("NA:80E18005 npu3 (nodeagent #7)")]


def test_a_drain_that_slurm_forgot_is_done_again() -> None:
    story = Story()
    story.reported(7, BAD)
    story.slurm = FREE
    assert story.after(30) == [Drain("NA:80E18005 npu3 (nodeagent #7)")]


def test_a_node_is_well_for_a_minute_in_a_row_before_it_is_resumed() -> None:
    story = Story()
    story.reported(7, BAD)
    story.reported(8, WELL)
    story.after(59)
    story.reported(9, BAD)
    story.reported(10, WELL)
    assert story.after(59) == []
    assert story.after(1) == [Resume()]


def test_unknown_neither_drains_nor_resumes_and_the_minute_begins_anew() -> None:
    story = Story()
    assert story.reported(6, UNKNOWN) == [Acknowledge(at(6))]
    assert story.after(10_000) == []
    story.reported(7, BAD)
    assert story.reported(8, UNKNOWN) == [Acknowledge(at(8))]
    assert story.after(10_000) == []
    story.reported(9, WELL)
    assert story.after(59) == []
    assert story.after(1) == [Resume()]


def test_while_slurm_does_not_answer_nothing_is_acknowledged_and_all_is_done_later() -> None:
    story = Story()
    story.reported(6, WELL)
    story.fails = True
    assert story.reported(7, BAD) == []
    assert story.after(1000) == []
    assert story.state.acknowledged == at(6)
    story.fails = False
    assert story.after(30) == [Drain("NA:80E18005 npu3 (nodeagent #7)"), Acknowledge(at(7))]


def test_the_pauses_between_tries_grow_to_half_a_minute() -> None:
    story = Story(fails=True)
    story.reported(7, BAD)
    pauses = []
    for _ in range(7):
        before_ns = story.now_ns
        due_ns = next_deadline(story.state, SETTINGS)
        assert due_ns is not None
        story.now_ns = due_ns
        pauses.append((due_ns - before_ns) // SECOND_NS)
        story.give(LoopTick())
    assert pauses == [2, 4, 8, 16, 30, 30, 30]


def test_a_job_is_requeued_once_and_only_after_the_drain() -> None:
    story = Story()
    drained, requeued, acknowledged = story.reported(7, BAD, 41)
    assert isinstance(drained, Drain)
    assert [requeued, acknowledged] == [Requeue(41), Acknowledge(at(7))]
    assert story.reported(8, BAD, 41) == [Acknowledge(at(8))]
    story.reported(9, BAD)
    assert story.reported(10, BAD, 41) == [Requeue(41), Acknowledge(at(10))], "it came back to the node"


def test_a_job_that_cannot_be_requeued_is_given_up_after_three_tries() -> None:
    story = Story()
    story.reported(7, BAD)
    story.refused = Requeue(41)
    assert story.reported(8, BAD, 41) == [Requeue(41)]
    assert story.after(5) == [Requeue(41)]
    assert story.after(5) == [Requeue(41), Acknowledge(at(8))]
    assert story.after(3600) == []


def test_thousands_of_well_nodes_ask_slurmctld_seldom() -> None:
    story = Story()
    story.reported(6, WELL)
    before = story.looks
    story.after(3600)
    assert story.looks - before == 7


def test_what_is_told_while_an_order_is_done_is_not_judged_by_an_older_look() -> None:
    story = Story()
    decision = decide(story.state, NodeReported(at(6), WELL), 0, SETTINGS)
    decision = decide(decision.state, NodeSeen(FREE), 0, SETTINGS)
    assert decision.effect == Acknowledge(at(6))
    decision = decide(decision.state, NodeReported(at(7), BAD), 0, SETTINGS)
    assert decision.effect is None
    assert decide(decision.state, EffectDone(), 0, SETTINGS).effect == LookAtNode()


def test_a_resume_follows_a_look_of_the_same_moment() -> None:
    story = Story()
    story.reported(7, BAD)
    story.reported(8, WELL)
    story.after(59.5)
    story.slurm = ANOTHERS
    assert story.after(10) == []
    assert story.slurm == ANOTHERS


def test_while_nobody_can_say_that_it_is_still_well_the_drain_goes_on_and_the_minute_begins_anew() -> None:
    story = Story(slurm=OURS, unsure=True)
    story.reported(7, WELL)
    assert story.after(3600) == [Resume()] * 60
    assert story.slurm == OURS
    story.unsure = False
    assert story.after(59) == []
    assert story.after(1) == [Resume()]
    assert story.slurm == FREE


def test_where_it_is_resumed_at_once_nobody_is_asked_without_a_pause() -> None:
    at_once = SlurmSettings(resume_after_ns=0, look_each_ns=25 * SECOND_NS)
    state = SlurmState(position=at(7), acknowledged=at(7), verdicts=WELL, well_since_ns=0, node=OURS)
    decision = decide(state, LoopTick(), 0, at_once)
    assert decision.effect == Resume()
    decision = decide(decision.state, Unsure(), 0, at_once)
    assert (decision.effect, decision.wake_ns) == (None, 2 * SECOND_NS)


VERDICTS = st.sampled_from([BAD, bad(WORSE, FAULT), bad(*HELD), WELL, UNKNOWN])
NODES = st.sampled_from([FREE, DOWN, OURS, OF_AN_EARLIER_VERSION, ANOTHERS])
PARTS = st.lists(
    st.one_of(
        st.tuples(st.just("reported"), VERDICTS),
        st.tuples(st.just("slurm"), NODES),
        st.tuples(st.just("fails"), st.booleans()),
        st.tuples(st.just("time"), st.integers(0, 3600)),
    ),
    max_size=40,
)


@given(PARTS)
def test_whatever_happens_nothing_of_others_is_touched_and_at_the_end_all_is_as_it_should_be(
    parts: list[tuple[str, Any]],
) -> None:
    story = Watched()
    seq = 0
    for what, value in [*parts, ("fails", False), ("time", 3600)]:
        match what:
            case "reported":
                seq += 1
                story.reported(seq, value)
            case "slurm":
                story.slurm = value
            case "fails":
                story.fails = value
            case _:
                story.after(value)
    if seq:
        assert story.state.acknowledged == at(seq)
        standing = story.state.verdicts.standing
        assert not (standing is Standing.BAD and story.slurm.takes_work)
        assert not (standing is Standing.WELL and story.slurm.is_ours)


class Watched(Story):
    """Fails where an order is not for the node as it stands, or what is acknowledged has had no effect."""

    def _do(self, order: SlurmEffect) -> SlurmInput:
        match order:
            case Drain():
                assert self.slurm.takes_work or is_outdated(self.slurm.reason, self.state.verdicts.faults)
                assert self.state.verdicts.standing is Standing.BAD
            case Resume():
                assert self.slurm.is_ours
                assert self.state.verdicts.standing is Standing.WELL
            case Acknowledge():
                assert self.state.node is not None
                assert not (self.state.verdicts.standing is Standing.BAD and self.state.node.takes_work)
        return super()._do(order)
