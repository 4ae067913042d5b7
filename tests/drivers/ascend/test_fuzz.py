"""Whatever bytes a library leaves in an event: no crash, and nothing that the daemon would not take."""

import ctypes

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeagent import wire
from nodeagent.drivers.ascend.abi import DcmiEvent, SwitchEvent
from nodeagent.drivers.ascend.events import ChipEvents, Listener
from nodeagent.drivers.ascend.unifiedbus import read_fault, signal_of
from nodeagent.wire import Batch
from tests.drivers.ascend.recorder import Recorder

EVENT_BYTES, SWITCH_EVENT_BYTES = ctypes.sizeof(DcmiEvent), ctypes.sizeof(SwitchEvent)


def taken(batch: wire.Report) -> wire.Report:
    return wire.decode_report(wire.encode(batch).rstrip(b"\n"))


@settings(max_examples=300, deadline=None)
@given(st.binary(min_size=EVENT_BYTES, max_size=EVENT_BYTES), st.booleans())
def test_any_event_is_refused_or_told_in_words_that_the_daemon_takes(raw: bytes, plausible: bool) -> None:
    emit = Recorder()
    listener = Listener(emit.enqueue)
    event = DcmiEvent.from_buffer_copy(raw)
    if plausible:
        event.type, event.event_t.deviceid, event.event_t.assertion = 0, 3, event.event_t.assertion % 3
    listener.expect({3: ChipEvents("npu3")})
    listener.take(ctypes.pointer(event))
    assert [taken(report) for report in emit.reports] == emit.reports
    assert len(emit.reports) + listener.refused == 1


@settings(max_examples=300, deadline=None)
@given(st.binary(min_size=SWITCH_EVENT_BYTES, max_size=SWITCH_EVENT_BYTES), st.booleans())
def test_any_event_of_a_switch_is_refused_or_told_in_words_that_the_daemon_takes(
    raw: bytes, plausible: bool
) -> None:
    event = SwitchEvent.from_buffer_copy(raw)
    if plausible:
        event.switchChipid, event.switchPortid, event.assertion = 3, event.switchPortid % 48, 1
    fault = read_fault(event, 7)
    if fault is not None:
        batch = Batch(signals=(signal_of(fault, event, 1),))
        assert taken(batch) == batch
