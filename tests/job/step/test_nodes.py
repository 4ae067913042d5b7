"""Which nodes make a run: whatever is lost, left out or doubtful."""

from hypothesis import given
from hypothesis import strategies as st

from nodeagent.job.step.loop import chosen
from nodeagent.job.step.values import StepOptions

NAMES = tuple(f"n{number}" for number in range(6))
SOME = st.sets(st.sampled_from(NAMES))


@given(
    most=st.integers(1, 6),
    less=st.integers(0, 5),
    has=SOME,
    before=SOME,
    left_out=SOME,
    doubtful=SOME,
)
def test_as_many_as_are_wanted_and_none_that_is_left_out(
    most: int, less: int, has: set[str], before: set[str], left_out: set[str], doubtful: set[str]
) -> None:
    least = max(1, most - less)
    in_order = [each for each in NAMES if each in has]
    usable = [each for each in in_order if each not in left_out]
    nodes = chosen(
        StepOptions(nodes=most, at_least=least),
        in_order,
        first=6,
        before=tuple(before),
        left_out=left_out,
        doubtful=doubtful,
    )
    if len(usable) < least:
        assert nodes is None
        return
    assert nodes is not None
    assert len(nodes) == min(most, len(usable))
    assert list(nodes) == [each for each in usable if each in nodes]
    spares = set(usable) - set(nodes)
    assert not (set(nodes) & doubtful and spares - doubtful), "a spare is better than a doubtful one"
    sure = {each for each in nodes if each not in doubtful}
    assert not (sure - before and (spares - doubtful) & before), "who was there before stays"


def test_without_a_wish_all_nodes_of_the_job_are_needed() -> None:
    assert chosen(StepOptions(), ("a", "b"), first=2) == ("a", "b")
    assert chosen(StepOptions(), ("a",), first=2) is None


def test_who_was_there_before_stays() -> None:
    assert chosen(StepOptions(nodes=2), ("a", "b", "c"), first=3, before=("b", "c")) == ("b", "c")
