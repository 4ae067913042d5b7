"""Whatever the nodes say, in whatever order: no success that is none, no run after the end, no node twice."""

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent.job.model import Counts, RunReason
from nodeagent.job.session.values import KeepCounts, Leave, Signalled
from nodeagent.job.step.loop import StepPhase
from nodeagent.job.step.values import NodeOutcome, StartRun, StepOptions, Waited
from tests.job.step.play import NODES, Play

SAID: st.SearchStrategy[dict[str, object]] = st.builds(
    dict,
    status=st.sampled_from((0, 0, 1, 75, 78, 85, 86, 87, 137, 143)),
    fault=st.booleans(),
    signalled=st.booleans(),
    progressed=st.booleans(),
    next_why=st.sampled_from(RunReason),
    pause_s=st.sampled_from((0.0, 1.0)),
    waited_s=st.sampled_from((0.0, 5.0)),
    placements=st.sampled_from((None, 3)),
    counts=st.builds(
        Counts,
        placements=st.integers(0, 4),
        placements_in_row=st.integers(0, 3),
        retries=st.integers(0, 3),
        hangs=st.integers(0, 3),
        best=st.sampled_from((None, 1, 9)),
    ),
)
WISHES = st.builds(
    StepOptions,
    nodes=st.sampled_from((None, 2, 3)),
    at_least=st.sampled_from((None, 1, 2)),
    reruns=st.booleans(),
    placements=st.sampled_from((None, 3)),
)
TURNS = st.tuples(
    st.fixed_dictionaries({}, optional=dict.fromkeys(NODES, SAID)),
    st.sets(st.sampled_from(NODES)),
    st.sampled_from((None, None, None, "signal", "ends")),
)


@settings(max_examples=300)
@given(WISHES, st.lists(TURNS, max_size=12))
def test_what_holds_whatever_happens(
    wish: StepOptions, turns: list[tuple[dict[str, dict[str, object]], set[str], str | None]]
) -> None:
    play = Play(wish)
    play.begin()
    away: set[str] = set()
    was_signalled = False
    for says, lost, event in turns:
        if play.left is not None:
            break
        plan = play.plans[-1]
        play.has = tuple(each for each in play.has if each not in lost)
        if event == "signal":
            play.give(Signalled(number=15))
            was_signalled = True
        said = [
            NodeOutcome(node=node, run=plan.run, **values)  # type: ignore[arg-type]
            for node, values in says.items()
            if node in plan.nodes
        ]
        away |= {each.node for each in said if each.fault and each.status in (75, 86)}
        orders = play.end(*said, ends=event == "ends")
        if play.state.phase is StepPhase.PAUSING:
            orders += [*play.give(Waited()), *play.allow()]

        all_done = len(said) == len(plan.nodes) and all(each.status == 0 for each in said)
        assert (play.left == 0) == all_done
        for order in orders:
            if isinstance(order, StartRun):
                assert not was_signalled
                assert order.plan.run == plan.run + 1
                assert set(order.plan.nodes) <= set(play.has) - away
                assert set(order.plan.whys) == set(order.plan.nodes)
            if isinstance(order, KeepCounts):
                assert min(order.counts.placements, order.counts.retries, order.counts.hangs) >= 0
        assert len([each for each in orders if isinstance(each, Leave | StartRun)]) == 1
