"""The table of a worker's life: what it allows, and that it allows nothing else."""

import itertools

import pytest

from nodeagent.daemon.workers.lifecycle import (
    TRANSITIONS,
    IllegalWorkerTransition,
    WorkerState,
    WorkerTrigger,
    after,
)


def test_ordinary_life() -> None:
    assert after(WorkerState.STARTING, WorkerTrigger.HELLO) is WorkerState.READY
    assert after(WorkerState.READY, WorkerTrigger.DISMISSED) is WorkerState.KILLING
    assert after(WorkerState.KILLING, WorkerTrigger.EXITED) is WorkerState.ENDED


def test_stuck_worker_is_abandoned_wherever_it_is() -> None:
    for state in (WorkerState.STARTING, WorkerState.READY, WorkerState.KILLING):
        assert after(state, WorkerTrigger.STUCK) is WorkerState.ABANDONED


def test_every_living_state_can_exit_and_the_end_is_the_end() -> None:
    for state in WorkerState:
        if state is WorkerState.ENDED:
            assert not [trigger for trigger in WorkerTrigger if (state, trigger) in TRANSITIONS]
        else:
            assert after(state, WorkerTrigger.EXITED) is WorkerState.ENDED


def test_what_the_table_does_not_hold_raises() -> None:
    for state, trigger in itertools.product(WorkerState, WorkerTrigger):
        if (state, trigger) not in TRANSITIONS:
            with pytest.raises(IllegalWorkerTransition, match=f"a worker that is {state} cannot take"):
                after(state, trigger)
