"""The one way in which an outlet says no: a gRPC status and a reason a person can act on."""

from enum import Enum


class Status(Enum):
    """The gRPC status codes in use, by number, so that nothing but the server needs gRPC."""

    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    UNAVAILABLE = 14


class Refusal(Exception):
    """Ends the call with ``status``; ``reason`` names the field or condition and what would be right."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
