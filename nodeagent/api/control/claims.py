"""SetClaims: job hooks declare which jobs use which devices. All claims of a call are taken, or none."""

from typing import Final

from nodeagent.api import request_fields
from nodeagent.api.access.credentials import Caller
from nodeagent.api.control.context import CallResult, Context
from nodeagent.api.refusal import Refusal, Status
from nodeagent.api.request_fields import known_device
from nodeagent.core.model import Claims, DeviceView, Kind
from nodeagent.core.state.limits import MAX_CLAIMS_ON_DEVICE
from nodeagent.messages.pb import control_service_pb2 as pb
from nodeagent.store.records import Publication

MAX_CLAIMS: Final = 1024


async def set_claims(context: Context, _caller: Caller, request: pb.SetClaimsRequest) -> CallResult:
    if not 0 < len(request.claims) <= MAX_CLAIMS:
        problem = f"claims: 1 to {MAX_CLAIMS}, not {len(request.claims)}"
        raise Refusal(Status.INVALID_ARGUMENT, problem)
    current = context.feed.current
    claims: dict[tuple[str, str], Claims] = {}
    for place, claim in enumerate(request.claims):
        given = _checked(current, f"claims[{place}]", claim)
        if claims.setdefault((given.device, given.job), given).claimed is not given.claimed:
            problem = f"{claim.job} cannot both claim and leave {claim.device}"
            raise Refusal(Status.INVALID_ARGUMENT, f"claims[{place}]: {problem}")
    _check_room(current, list(claims.values()))
    taken = await context.ask(*claims.values())
    return CallResult(message=pb.SetClaimsResponse(node=context.node), result=_result(request), taken=taken)


def _checked(current: Publication, field: str, claim: pb.Claim) -> Claims:
    try:
        device = known_device(current, claim.device)
    except Refusal as refusal:
        raise Refusal(refusal.status, f"{field}.{refusal.reason}") from refusal
    if device.kind is not Kind.CHIP:
        problem = f"{device.name} is not a chip; jobs claim only NPUs and GPUs"
        raise Refusal(Status.INVALID_ARGUMENT, f"{field}.device: {problem}")
    return Claims(
        device=device.id,
        job=request_fields.word(f"{field}.job", claim.job),
        kind=request_fields.word(f"{field}.kind", claim.kind) if claim.kind else "",
        claimed=claim.claimed,
    )


def _check_room(current: Publication, claims: list[Claims]) -> None:
    """The core would drop claims beyond its limit; a call is taken as a whole or refused."""
    devices = {device.id: device for device in current.view.devices}
    for device_id in {claim.device for claim in claims}:
        device = devices[device_id]
        if len(_jobs_after(device, claims)) > MAX_CLAIMS_ON_DEVICE:
            problem = f"at most {MAX_CLAIMS_ON_DEVICE} jobs; end the claims of jobs that have ended"
            raise Refusal(Status.RESOURCE_EXHAUSTED, f"claims: {device.name}: {problem}")


def _result(request: pb.SetClaimsRequest) -> str:
    claimed = [f"{claim.device} by {claim.job}" for claim in request.claims if claim.claimed]
    left = [f"{claim.device} by {claim.job}" for claim in request.claims if not claim.claimed]
    parts = (("claimed", claimed), ("left", left))
    return "; ".join(f"{verb} {', '.join(which)}" for verb, which in parts if which)


def _jobs_after(device: DeviceView, claims: list[Claims]) -> set[str]:
    on_device = [claim for claim in claims if claim.device == device.id]
    jobs = {job for job, _ in device.claims} | {claim.job for claim in on_device if claim.claimed}
    return jobs - {claim.job for claim in on_device if not claim.claimed}
