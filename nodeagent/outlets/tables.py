"""What an operator is told of a reload of the tables: values that the daemon fills in, and their messages."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nodeagent.core.preview import LevelChange, Preview, StanceChange
from nodeagent.outlets import messages
from nodeagent.outlets.node import NodeFacts
from nodeagent.outlets.pb import control_service_pb2 as pb


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """The tables are sound: ``digest`` is theirs, ``preview`` what they change of what is open."""

    digest: str
    warnings: tuple[str, ...] = ()
    preview: Preview


class TablesRefused(Exception):
    """Nothing was changed; str() is one line for each thing that is wrong."""


Reload = Callable[[bool], Awaitable[Reloaded]]
"""Called with whether it is a dry run. Raises TablesRefused."""


def response(facts: NodeFacts, reloaded: Reloaded) -> pb.ReloadTablesResponse:
    return pb.ReloadTablesResponse(
        node=messages.node_identity(facts),
        catalog_digest=reloaded.digest,
        warnings=reloaded.warnings,
        levels=[_level_change(change) for change in reloaded.preview.levels],
        devices=[_device_change(change) for change in reloaded.preview.devices],
    )


def _level_change(change: LevelChange) -> pb.LevelChange:
    return pb.LevelChange(
        id=change.id,
        device=change.device,
        code=change.code,
        before=messages.level_number(change.before),
        after=messages.level_number(change.after),
    )


def _device_change(change: StanceChange) -> pb.DeviceChange:
    (verdict_before, handling_before), (verdict, handling) = change.before, change.after
    return pb.DeviceChange(
        device=change.device,
        verdict_before=messages.VERDICTS[verdict_before],
        handling_before=messages.HANDLINGS[handling_before],
        verdict=messages.VERDICTS[verdict],
        handling=messages.HANDLINGS[handling],
    )
