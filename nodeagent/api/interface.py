"""What a caller learns of the interface itself: its version, what this daemon can do, and who the caller is.

The version is that of ``proto/``, not of the daemon. ``tests/api/test_interface.py`` holds it against the
descriptors that are kept in ``proto/kept``.
"""

from collections.abc import Mapping
from typing import Final

from nodeagent.api.access.credentials import Caller, Role
from nodeagent.config.config import Config
from nodeagent.messages.pb import fault_service_pb2 as pb

MAJOR: Final = 1
MINOR: Final = 1
"""One more than the newest in ``proto/kept``, as soon as anything is added."""

_ALWAYS: Final = (
    pb.CAPABILITY_EVENTS_BY_TIME,
    pb.CAPABILITY_EVENTS_BY_CODE,
    pb.CAPABILITY_REWIND_CONSUMER,
)

_ROLES: Final[Mapping[Role, pb.CallerRole]] = {
    Role.NONE: pb.CALLER_ROLE_UNSPECIFIED,
    Role.READER: pb.CALLER_ROLE_READER,
    Role.REPORTER: pb.CALLER_ROLE_REPORTER,
    Role.OPERATOR: pb.CALLER_ROLE_OPERATOR,
}


def version() -> pb.ApiVersion:
    return pb.ApiVersion(major=MAJOR, minor=MINOR)


def capabilities(config: Config) -> tuple[pb.Capability, ...]:
    """What a daemon with this configuration can do."""
    return (*_ALWAYS, pb.CAPABILITY_SUPERVISED_JOBS) if config.jobs.enabled else _ALWAYS


def caller(value: Caller) -> pb.Caller:
    return pb.Caller(identity=value.identity, role=_ROLES[value.role])
