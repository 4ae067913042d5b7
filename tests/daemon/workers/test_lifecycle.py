"""The table of a worker's life: what it allows, and that it allows nothing else."""

import itertools

import pytest

from nodeagent.daemon.workers.lifecycle import TRANSITIONS, IllegalTransition, State, Trigger, after


def test_ordinary_life() -> None:
    assert after(State.STARTING, Trigger.HELLO) is State.READY
    assert after(State.READY, Trigger.DISMISSED) is State.KILLING
    assert after(State.KILLING, Trigger.EXITED) is State.ENDED


def test_stuck_worker_is_abandoned_wherever_it_is() -> None:
    for state in (State.STARTING, State.READY, State.KILLING):
        assert after(state, Trigger.STUCK) is State.ABANDONED


def test_every_living_state_can_exit_and_the_end_is_the_end() -> None:
    for state in State:
        if state is State.ENDED:
            assert not [trigger for trigger in Trigger if (state, trigger) in TRANSITIONS]
        else:
            assert after(state, Trigger.EXITED) is State.ENDED


def test_what_the_table_does_not_hold_raises() -> None:
    for state, trigger in itertools.product(State, Trigger):
        if (state, trigger) not in TRANSITIONS:
            with pytest.raises(IllegalTransition, match=f"a worker that is {state} cannot take"):
                after(state, trigger)
