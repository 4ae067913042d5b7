"""Storms: reported at once, then counted; and nothing read stays unreported behind a cursor."""

from hypothesis import given
from hypothesis import strategies as st

from nodeagent.core.model import Assertion
from nodeagent.drivers.kmsg.coalesce import Coalescer
from nodeagent.wire import Signal

SECOND_NS = 1_000_000_000


def line(code: str, at_ns: int, *, trusted: bool = True, assertion: Assertion = Assertion.ONCE) -> Signal:
    return Signal(
        device="node", code=code, assertion=assertion, first_ns=at_ns, last_ns=at_ns, trusted=trusted
    )


def reported(signals: list[Signal]) -> list[tuple[str, int]]:
    return [(signal.code, signal.count) for signal in signals]


def test_first_of_a_storm_passes_at_once_and_the_rest_is_one_count() -> None:
    coalescer = Coalescer()
    assert reported(coalescer.add(line("A", 0), 0)) == [("A", 1)]
    for at_ns in range(1, 1000):
        assert coalescer.add(line("A", at_ns), at_ns) == []
    assert coalescer.due_ns == SECOND_NS
    assert coalescer.expire(SECOND_NS - 1) == []
    (flushed,) = coalescer.expire(SECOND_NS)
    assert (flushed.count, flushed.first_ns, flushed.last_ns) == (999, 1, 999)


def test_storm_that_goes_on_is_one_signal_a_second() -> None:
    coalescer = Coalescer()
    emitted = []
    for at_ms in range(0, 5000, 10):
        at_ns = at_ms * 1_000_000
        emitted += coalescer.expire(at_ns)
        emitted += coalescer.add(line("A", at_ns), at_ns)
    emitted += coalescer.flush(5 * SECOND_NS)
    assert [count for _, count in reported(emitted)] == [1, 99, 100, 100, 100, 100]


def test_quiet_second_makes_the_next_one_a_first_again() -> None:
    coalescer = Coalescer()
    coalescer.add(line("A", 0), 0)
    assert reported(coalescer.add(line("A", SECOND_NS), SECOND_NS)) == [("A", 1)]


def test_another_code_in_the_storm_passes_at_once_with_what_was_counted_before_it() -> None:
    coalescer = Coalescer()
    coalescer.add(line("A", 0), 0)
    coalescer.add(line("A", 1), 1)
    assert reported(coalescer.add(line("B", 2), 2)) == [("A", 1), ("B", 1)]
    assert not coalescer.pending


def test_a_flapping_fault_ends_as_its_last_line_says() -> None:
    coalescer = Coalescer()
    for at_ns in (0, 2, 4):
        coalescer.add(line("A", at_ns), at_ns)
        coalescer.add(line("A", at_ns + 1, assertion=Assertion.RECOVER), at_ns + 1)
    coalescer.add(line("A", 6), 6)
    last = coalescer.flush(7)[-1]
    assert (last.assertion, last.last_ns) == (Assertion.ONCE, 6)


def test_what_user_space_wrote_never_swallows_what_the_kernel_wrote() -> None:
    coalescer = Coalescer()
    coalescer.add(line("A", 0, trusted=False), 0)
    assert reported(coalescer.add(line("A", 1), 1)) == [("A", 1)]


def test_keys_are_bounded_and_nothing_is_dropped() -> None:
    coalescer = Coalescer(max_keys=4)
    emitted = []
    for number in range(100):
        emitted += coalescer.add(line(f"C{number}", number), number)
        emitted += coalescer.add(line(f"C{number}", number), number)
    emitted += coalescer.flush(100)
    assert sum(signal.count for signal in emitted) == 200
    assert len(coalescer._windows) <= 4


LINES = st.lists(st.tuples(st.sampled_from("ABCDE"), st.integers(0, 400_000_000)), max_size=60)


@given(LINES, st.integers(1, 6))
def test_every_line_is_told_once_in_its_key(lines: list[tuple[str, int]], max_keys: int) -> None:
    coalescer = Coalescer(max_keys=max_keys)
    emitted: list[Signal] = []
    at_ns = 0
    for code, pause_ns in lines:
        at_ns += pause_ns
        emitted += coalescer.expire(at_ns)
        batch = coalescer.add(line(code, at_ns), at_ns)
        emitted += batch
        assert not (batch and coalescer.pending)
    emitted += coalescer.flush(at_ns)
    for code in "ABCDE":
        assert sum(s.count for s in emitted if s.code == code) == sum(c == code for c, _ in lines)


@given(LINES)
def test_nothing_waits_longer_than_a_window(lines: list[tuple[str, int]]) -> None:
    coalescer = Coalescer()
    at_ns = 0
    for code, pause_ns in lines:
        at_ns += pause_ns
        emitted = [*coalescer.expire(at_ns), *coalescer.add(line(code, at_ns), at_ns)]
        assert all(at_ns - signal.first_ns <= SECOND_NS + pause_ns for signal in emitted)
