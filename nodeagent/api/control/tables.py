"""ReloadTables: the daemon loads its tables again; the answer has the changes, or why it was refused."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from nodeagent.api import messages
from nodeagent.api.access.credentials import Caller
from nodeagent.api.control.context import CallResult
from nodeagent.api.messages import NodeFacts
from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.preview import LevelChange, Preview, StanceChange
from nodeagent.messages import enums
from nodeagent.messages.mapping import writer
from nodeagent.messages.pb import control_service_pb2 as pb

MAX_REASON_BYTES: Final = 6000
"""gRPC takes 8 KiB of metadata by default, and a status is part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """The tables are valid: ``digest`` is theirs, ``preview`` is what they change of open conditions."""

    digest: str
    warnings: tuple[str, ...] = ()
    preview: Preview


class TablesRefused(Exception):
    """Nothing was changed; str() is one line for each thing that is wrong."""


Reload = Callable[[bool], Awaitable[Reloaded]]
"""Called with whether it is a dry run. Raises TablesRefused."""


class Tables:
    """Serves ReloadTables."""

    def __init__(self, facts: NodeFacts, reload: Reload) -> None:
        self._facts = facts
        self._reload = reload

    async def reload_tables(self, _caller: Caller, request: pb.ReloadTablesRequest) -> CallResult:
        try:
            reloaded = await self._reload(request.dry_run)
        except TablesRefused as refused:
            reason = _first_lines(str(refused).splitlines())
            raise Refusal(Status.FAILED_PRECONDITION, reason) from refused
        result = "would change" if request.dry_run else "in force"
        return CallResult(message=_response(self._facts, reloaded), result=f"{result}: {reloaded.digest}")


def _response(facts: NodeFacts, reloaded: Reloaded) -> pb.ReloadTablesResponse:
    return pb.ReloadTablesResponse(
        node=messages.node_identity(facts),
        catalog_digest=reloaded.digest,
        warnings=reloaded.warnings,
        levels=[_level_change(change) for change in reloaded.preview.levels],
        devices=[_device_change(change) for change in reloaded.preview.devices],
    )


def _escaped_length(line: str) -> int:
    """On the wire: what is not printable ASCII takes three bytes for each of its own."""
    return sum(1 if 0x20 <= byte <= 0x7E and byte != ord("%") else 3 for byte in line.encode())


def _first_lines(lines: Sequence[str]) -> str:
    """As many whole lines as a status takes, and how many more there are."""
    kept, size = list[str](), 0
    for line in lines:
        size += _escaped_length(line) + len("%0A")
        if size > MAX_REASON_BYTES:
            kept.append(f'and {len(lines) - len(kept)} more; "nodeagent tables check" shows them all')
            break
        kept.append(line)
    return "\n".join(kept)


_level_change = writer(LevelChange, pb.LevelChange)


def _device_change(change: StanceChange) -> pb.DeviceChange:
    (verdict_before, handling_before), (verdict, handling) = change.before, change.after
    return pb.DeviceChange(
        device=change.device,
        verdict_before=enums.VERDICTS[verdict_before],
        handling_before=enums.HANDLINGS[handling_before],
        verdict=enums.VERDICTS[verdict],
        handling=enums.HANDLINGS[handling],
    )
