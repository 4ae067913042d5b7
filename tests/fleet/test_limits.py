"""What keeps thousands of nodes within bounds: how fast they are connected to, how often they are shown."""

import resource

from nodeagent.fleet.follower import ConnectPace, files_missing
from nodeagent.fleet.state import NodeStates
from tests.fleet.given import answering


def test_turns_that_are_asked_for_at_once_are_apart() -> None:
    pace = ConnectPace(a_second=4.0)
    assert [pace.given_at_s(10.0) for _ in range(3)] == [10.0, 10.25, 10.5]


def test_time_in_which_no_one_asked_is_not_saved_up() -> None:
    pace = ConnectPace(a_second=4.0)
    assert [pace.given_at_s(now_s) for now_s in (10.0, 20.0, 20.0)] == [10.0, 20.0, 20.25]


def test_the_limit_of_open_files_is_raised_and_what_is_missing_counted() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert files_missing(1) == 0
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    assert files_missing(hard) == 200


def test_the_same_state_again_is_no_change_on_the_board() -> None:
    """Whoever shows thousands of nodes looks at them only where something has changed."""
    node_states = NodeStates()
    node_states.put(answering("a"))
    node_states.put(answering("b"))
    version = node_states.version
    node_states.put(node_states.states["a"])
    assert node_states.version == version
    node_states.put(answering("a"))
    assert node_states.version == version + 1
    node_states.remove([answering("a").endpoint])
    assert (node_states.version, set(node_states.states)) == (version + 2, {"b"})
