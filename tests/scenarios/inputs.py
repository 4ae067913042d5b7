"""The commands of a scenario that are inputs of the engine, read from their words.

CODE DEVICE occur|recover|once [source=ascend] [severity=2] [count=3] [said=TIME] [backdated]
                               [injected] [shown_only] [userspace] [pid=7] [place=GPC0]
poll DEVICE|* [CODE|CODE/SEVERITY...] [begun=TIME] [incomplete] [source=ascend]
                                        what is active, asked a millisecond before if not said
wait                                    only time passes
lost|back SOURCE [DEVICE] [optional]    a required source if not said
seen NAME ID|unreadable [PCI] [kind=chip] [source=ascend] [upstream=PCI] [recovery_action=told]
                                                           [mig=disabled] [group=ring0]  |  gone NAME
held DEVICE JOB|nobody
above|below RULE DEVICE                 a reading crosses a bound of a threshold rule
counts METRIC DEVICE VALUE              what a counter shows
isolate|release DEVICE OWNER [until=TIME] [only=ID] [for=REASON] [by=WHO] [force]
                                        by the owner himself if not said, and for "service"
quiesce|resume OWNER [until=TIME] [only=ID] [for=REASON] [by=WHO] [force]
reject REASON                           the tables on disk were refused

Those about jobs and resets are in ``acting``.
"""

from collections.abc import Sequence

from nodeagent.core.model import (
    NODE,
    ActiveCode,
    ActiveSet,
    Assertion,
    CounterMark,
    DeviceGone,
    DeviceSeen,
    Edge,
    Holder,
    Input,
    Kind,
    Operator,
    ProcessesListed,
    Signal,
    SourceBack,
    SourceLost,
    TablesRejected,
    Tick,
)
from tests.scenarios import acting
from tests.scenarios.wording import options_of, parse_ns

_ATTRIBUTES = ("upstream", "recovery_action", "mig", "group")
_FLAGS = {"injected", "userspace", "shown_only", "backdated", "incomplete", "optional", "force"}


def read(at_ns: int, words: Sequence[str]) -> Input:
    """``at_ns`` is the time of the rule clock. Raises ValueError for a command that is none."""
    if words[0] in acting.VERBS:
        return acting.read(words)
    flags = _FLAGS.intersection(words)
    plain, options = options_of([word for word in words if word not in _FLAGS])
    match plain:
        case ["wait"]:
            return Tick()
        case ["poll", device, *codes]:
            return _poll(at_ns, device, codes, flags, options)
        case ["lost", source, *device]:
            return SourceLost(
                source=source, reason="no answer", device="".join(device), required="optional" not in flags
            )
        case ["back", source, *device]:
            return SourceBack(source=source, device="".join(device), required="optional" not in flags)
        case ["seen", _, _, *_]:
            return seen(words)
        case ["gone", name]:
            return DeviceGone(source="ascend", device=name, reason="gone from the bus")
        case ["held", device, job]:
            return _held(device, job)
        case ["above" | "below" as verb, rule, device]:
            return Edge(source="ascend", device=device, rule=rule, above=verb == "above", value=0.0)
        case ["counts", metric, device, value]:
            return CounterMark(source="ascend", device=device, metric=metric, value=int(value))
        case ["isolate" | "release" as verb, device, owner]:
            return _order(verb, device, owner, flags, options)
        case ["quiesce" | "resume" as verb, owner]:
            return _order(verb, NODE, owner, flags, options)
        case ["reject", *reason]:
            return TablesRejected(reason=" ".join(reason))
        case [code, device, "occur" | "recover" | "once" as assertion]:
            return _signal(code, device, Assertion(assertion), flags, options)
    raise ValueError(f"no such command: {' '.join(words)}")


def _signal(code: str, device: str, assertion: Assertion, flags: set[str], options: dict[str, str]) -> Signal:
    return Signal(
        source=options.get("source", "ascend"),
        device=device,
        code=code,
        assertion=assertion,
        severity=int(options["severity"]) if "severity" in options else None,
        count=int(options.get("count", "1")),
        last_ns=parse_ns(options["said"]) if "said" in options else None,
        evidence={key: options[key] for key in ("pid", "place") if key in options},
        backdated="backdated" in flags,
        injected="injected" in flags,
        affect_verdict="shown_only" not in flags,
        trusted="userspace" not in flags,
    )


def _poll(
    at_ns: int, device: str, codes: Sequence[str], flags: set[str], options: dict[str, str]
) -> ActiveSet:
    return ActiveSet(
        source=options.get("source", "ascend"),
        device=device,
        codes=tuple(map(_active, codes)),
        begun_ns=parse_ns(options["begun"]) if "begun" in options else at_ns - 10**6,
        complete="incomplete" not in flags,
    )


def _order(verb: str, device: str, owner: str, flags: set[str], options: dict[str, str]) -> Operator:
    return Operator(
        who=options.get("by", owner),
        owner=owner,
        what=verb,
        device=device,
        reason=options.get("for", "service"),
        until_ns=parse_ns(options["until"]) if "until" in options else None,
        only=options.get("only", ""),
        force="force" in flags,
    )


def _active(word: str) -> ActiveCode:
    code, _, severity = word.partition("/")
    return ActiveCode(code=code, severity=int(severity) if severity else None)


def seen(words: Sequence[str]) -> DeviceSeen:
    (_, name, identity, *pci), options = options_of(list(words))
    attributes = {"pci": pci[0]} if pci else {}
    attributes |= {name: options[name] for name in _ATTRIBUTES if name in options}
    return DeviceSeen(
        source=options.get("source", "ascend"),
        device=name,
        kind=Kind(options.get("kind", "chip")),
        vendor="ascend",
        identity="" if identity == "unreadable" else identity,
        attributes=attributes,
    )


def _held(device: str, job: str) -> ProcessesListed:
    """A job is one process, of the same number on every device; another job is another one."""
    pid = sum(map(ord, job))
    holders = () if job == "nobody" else (Holder(pid=pid, start_time=1, command="python", job=job),)
    return ProcessesListed(device=device, holders=holders)
