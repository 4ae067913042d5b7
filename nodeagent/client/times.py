"""Times of messages as Python has them."""

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp


def moment(stamp: Timestamp) -> datetime:
    """Aware, UTC, to the microsecond."""
    return datetime.fromtimestamp(stamp.seconds, UTC).replace(microsecond=stamp.nanos // 1000)
