"""Snapshots of a node as the client library hands them out, and facts, for what is decided by them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from nodeagent.client import (
    Condition,
    Device,
    Hold,
    HoldKind,
    JobClaim,
    Kind,
    Level,
    Position,
    Promotion,
    Reset,
    ResetStage,
    Snapshot,
    Source,
    Verdict,
)
from nodeagent.schedulers.kubernetes.facts import SnapshotFacts, facts_of
from tests.client import given

AT_S = 1_795_000_000
AT = datetime.fromtimestamp(AT_S, UTC)


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def position(seq: int = 812) -> Position:
    return Position(uuid="11111111-2222-3333-4444-555555555555", epoch=1, seq=seq)


def device(
    name: str,
    verdict: Verdict = Verdict.ALLOW,
    *,
    code: str = "",
    kind: Kind = Kind.CHIP,
    series: str = "910B",
    level: Level | None = None,
    network_unhealthy: bool = False,
    job: str = "",
) -> Device:
    """``code`` is why. ``job`` has claimed it."""
    return given.device(
        name,
        verdict,
        kind=kind,
        level=level,
        network_unhealthy=network_unhealthy,
        reasons=given.reasons(code) if code else (),
        attributes={"series": series} if series else {},
        claims=(JobClaim(job=job, kind="training"),) if job else (),
    )


def node(verdict: Verdict = Verdict.ALLOW, code: str = "") -> Device:
    return device("node", verdict, code=code, kind=Kind.NODE, series="")


def npus(count: int, *broken: Device, series: str = "910B") -> tuple[Device, ...]:
    """The node, and its NPUs, of which some are not as the others."""
    special = {each.name: each for each in broken}
    names = [f"npu{number}" for number in range(count)]
    return (node(), *(special.get(name, device(name, series=series)) for name in names))


def condition(
    on: str,
    code: str,
    level: Level,
    opened_ms: int,
    *,
    source: str = "ascend",
    evidence: Mapping[str, str] | None = None,
    affects_verdict: bool = True,
) -> Condition:
    return Condition(
        id=f"{on}/{code}/1",
        device_id=f"{on}-id",
        device=on,
        code=code,
        name="",
        source=source,
        level=level,
        base_level=level,
        opened_at=at(opened_ms),
        last_at=at(opened_ms),
        count=1,
        user_induced=False,
        unknown=False,
        injected=not affects_verdict,
        affects_verdict=affects_verdict,
        evidence=evidence or {},
    )


def promotion(on: str, code: str, fired_ms: int) -> Promotion:
    return Promotion(
        id=f"{on}/often/1",
        device_id=f"{on}-id",
        device=on,
        rule="often",
        code=code,
        name="",
        level=Level.MANUALLY_SEPARATE_NPU,
        fired_at=at(fired_ms),
        effective=True,
        occurrences=(),
    )


def isolation(on: str) -> Hold:
    return Hold(
        id=f"hold-of-{on}",
        kind=HoldKind.ISOLATION,
        device_id=f"{on}-id",
        device=on,
        owner="alice",
        reason="a cable",
        since=AT,
        until=None,
        set_by="uid:0",
    )


def reset(on: str, stage: ResetStage = ResetStage.RUNNING) -> Reset:
    return Reset(
        id="reset-1",
        devices=(on,),
        device_ids=(f"{on}-id",),
        mode=None,
        stage=stage,
        codes=(),
        condition_ids=(),
        who="",
        reason="",
        attempt=1,
        approved=False,
        blocked_by=(),
        proposed_at=AT,
        due_at=None,
        started_at=AT,
        ended_at=None,
        verified=(),
        result="",
        report="",
    )


def source(name: str, *, observing: bool = True) -> Source:
    return Source(name=name, observing=observing, lost_at=None, reason="", required=False, device_id="")


def snapshot(
    devices: Sequence[Device],
    *,
    conditions: Sequence[Condition] = (),
    promotions: Sequence[Promotion] = (),
    holds: Sequence[Hold] = (),
    resets: Sequence[Reset] = (),
    sources: Sequence[Source] = (),
    seq: int = 812,
) -> Snapshot:
    return Snapshot(
        position=position(seq),
        reason="",
        durable=True,
        missed_from_seq=0,
        oldest_seq=1,
        at=AT,
        catalog_digest="",
        devices=tuple(devices),
        conditions=tuple(conditions),
        promotions=tuple(promotions),
        holds=tuple(holds),
        sources=tuple(sources),
        resets=tuple(resets),
    )


def well(seq: int = 812) -> SnapshotFacts:
    """A node whose eight NPUs take work."""
    return facts_of(snapshot(npus(8), seq=seq))


def broken(verdict: Verdict = Verdict.ISOLATE, code: str = "80E18005", seq: int = 813) -> SnapshotFacts:
    """One of them does not."""
    return facts_of(
        snapshot(
            npus(8, device("npu3", verdict, code=code)),
            conditions=(condition("npu3", code, Level.RESTART_NPU, 1),),
            seq=seq,
        )
    )
