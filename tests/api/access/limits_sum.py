"""What all that the limits allow can hold together, in bytes: from the limits and from what each thing takes.

The costs of single things were measured on a daemon that had a hundred of them, and are taken half as large
again. Nothing here is what clients usually do.
"""

from typing import Final

from nodeagent.api.access import limits
from nodeagent.api.access.relay import CHUNK_BYTES, SEND_BUFFER_BYTES
from nodeagent.api.faults.history import PAGE_EVENTS, PAGES_KEPT
from nodeagent.api.jobs import limits as job_limits
from nodeagent.job.lines import MAX_LINE_BYTES
from nodeagent.metrics.http import MAX_CONNECTIONS as METRICS_CONNECTIONS
from nodeagent.metrics.http import MAX_HEAD_BYTES
from nodeagent.vendors import DRIVERS

KIB: Final = 1024
MIB: Final = 1024 * KIB

DAEMON: Final = 96 * MIB
"""The daemon without clients, in a storm: 65 MiB were measured after 60,000 events."""

WORKERS: Final = (sum(not traits.has_unit for traits in DRIVERS.values()) + 1) * 25 * MIB
"""One process for each driver that no unit of its own hosts, with its library, and one left behind."""

CONNECTION: Final = 80 * KIB
"""Both ends in the relay, gRPC's, HTTP/2 and TLS."""

GRPC_SEND_BUFFER: Final = 208 * KIB
"""net.core.wmem_default: gRPC leaves it to the kernel on its side of the relay."""

CALL: Final = 40 * KIB
"""A call or stream with nothing to say: gRPC's part, tasks, the filter's and the subscription's objects."""

PENDING_CALL: Final = 16 * KIB
EVENT: Final = 4 * KIB
"""A stored event as an object, with evidence and reasons."""

METRICS_PAGE: Final = 512 * KIB
"""/metrics of sixteen chips has 81 KiB."""

SOCKETS: Final = 4
"""Each with a gRPC server of its own."""


def connections_bytes() -> tuple[int, int]:
    """(in the daemon, in the kernel)"""
    count = sum(
        limit.total
        for limit in (
            limits.PUBLIC_CONNECTIONS,
            limits.CONTROL_CONNECTIONS,
            limits.TCP_CONNECTIONS,
            limits.NODE_HEALTH_CONNECTIONS,
        )
    )
    # The kernel doubles what it is asked for.
    return count * (CONNECTION + CHUNK_BYTES), count * (GRPC_SEND_BUFFER + 2 * 2 * SEND_BUFFER_BYTES)


def streams_bytes() -> int:
    """Each with a filter as large as there may be, and a batch that is not taken: ours, and gRPC's copy."""
    names = limits.MAX_FILTER_DEVICES * (limits.MAX_NAME_LENGTH + 64)
    return limits.STREAMS.total * (names + 2 * limits.MAX_BATCH_BYTES)


def calls_bytes() -> int:
    """Each with a request as large as there may be, as bytes and as a message, and a small answer."""
    return limits.CALLS.total * (2 * limits.MAX_REQUEST_BYTES + 2 * limits.SMALL_ANSWER_BYTES)


def node_health_bytes() -> int:
    """All calls that its connections can hold, each with a request and an answer."""
    calls = limits.NODE_HEALTH_CONNECTIONS.total * limits.NODE_HEALTH_CALLS_ON_CONNECTION
    return calls * (CALL + 2 * limits.NODE_HEALTH_REQUEST_BYTES + 2 * limits.SMALL_ANSWER_BYTES)


def answers_bytes() -> int:
    """All room there is, and what was given before an answer's size was known; twice, for gRPC has a copy."""
    return 2 * (limits.ANSWER_BYTES.total + limits.CALLS.total * limits.MAX_LISTED_BYTES)


def supervisors_bytes() -> int:
    """Each with a line as long as there may be, as bytes twice and as values, and what it does not read."""
    return job_limits.SUPERVISORS.total * (4 * MAX_LINE_BYTES + job_limits.MAX_UNREAD_BYTES)


def metrics_bytes() -> int:
    return METRICS_CONNECTIONS * (MAX_HEAD_BYTES + METRICS_PAGE)


def daemon_bytes() -> int:
    """Of the daemon's process."""
    return (
        DAEMON
        + connections_bytes()[0]
        + supervisors_bytes()
        + limits.OPEN_CALLS.total * CALL
        + SOCKETS * 2 * limits.PENDING_CALLS * PENDING_CALL
        + streams_bytes()
        + calls_bytes()
        + node_health_bytes()
        + answers_bytes()
        + PAGES_KEPT * PAGE_EVENTS * EVENT
        + metrics_bytes()
    )


def unit_bytes() -> int:
    """Of all that the unit is charged for: the daemon, its workers, what the kernel keeps for its sockets."""
    return daemon_bytes() + WORKERS + connections_bytes()[1]
