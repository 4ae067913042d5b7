"""The commands of the scenarios. The real engine does the rest.

Tables, before ``begin`` or a ``reload``:

    row CODE LEVEL [kind=chip] [user_induced] [affects=node] [clear_on=recover,reset,10m]
    frequency ID CODE[,CODE] times=3 window=24h level=LEVEL [release=48h] [correlation=30s] [at_least=LEVEL]
    duration ID CODE fault=20s recover=60s level=LEVEL
    relation ID CODE with=CODE[,CODE] within=3m then=absorb|level|cancel [same=device] [level=LEVEL]
    threshold ID CODE above=90 clear_below=85 for=60s
    counter ID CODE metric=NAME increase=1000 window=24h
    set NAME VALUE                          a setting, such as: set mode graceful
    forget CODE|ID                          a row or rule

Then, each at its time (``90s``, ``2m``, ``21s+1ns``):

    begin [chips=1]                         start with npu0, npu1, ... observed
    TIME CODE DEVICE occur|recover|once [source=ascend] [severity=2] [count=3] [injected] [userspace]
    TIME poll DEVICE|* [CODE...] [incomplete] [source=ascend]   what is active, asked a moment before
    TIME wait                               only time passes
    TIME lost|back SOURCE [DEVICE]
    TIME restart|reboot|reload
    TIME crash                              a new process: what was stored is replayed, nothing is told
    TIME seen NAME ID [PCI]  |  TIME gone NAME
    TIME held DEVICE JOB|nobody
    TIME above|below RULE DEVICE            a reading crosses a bound of a threshold rule
    TIME counts METRIC DEVICE VALUE         what a counter shows
    TIME isolate|release DEVICE WHO [until=TIME]
    TIME show                               every device as it stands, and what is open
"""

from nodeagent.core.catalog import Catalog
from nodeagent.core.engine import Engine
from nodeagent.core.model import (
    ActiveCode,
    ActiveSet,
    Assertion,
    CatalogChanged,
    CounterMark,
    DeviceGone,
    DeviceSeen,
    Edge,
    Holder,
    Holders,
    Input,
    Kind,
    Operator,
    Signal,
    SourceBack,
    SourceLost,
    Started,
    Tick,
)
from tests.scenarios.tables import Tables
from tests.scenarios.wording import options_of, parse_ns, told


class Stage:
    def __init__(self) -> None:
        self._tables = Tables()
        self._catalogs: dict[str, Catalog] = {}
        self._engine = Engine(self._catalogs)
        self._boots = 1
        self._stored: list[tuple[int, Input]] = []

    def perform(self, command: str) -> list[str]:
        """The lines that one command tells. Raises ValueError for a command that is none."""
        verb, *words = command.split()
        if self._tables.perform(verb, words):
            return []
        if verb == "begin":
            return self._begin(words)
        return self._at(parse_ns(verb), *words)

    # ------------------------------------------------------------------ inputs

    def _begin(self, words: list[str]) -> list[str]:
        _, options = options_of(words)
        self._step(0, self._catalog())
        self._step(0, Started(boot_id="boot-1", version="1"))
        for index in range(int(options.get("chips", "1"))):
            self._step(0, _seen([f"npu{index}", f"die{index}", f"0000:0{index}:00.0"]))
        self._step(0, SourceBack(source="ascend"))
        return []

    def _catalog(self) -> CatalogChanged:
        """The tables as they stand, added to what the engine may be told of."""
        digest = f"tables-{len(self._catalogs) + 1}"
        self._catalogs[digest] = self._tables.catalog(digest)
        return CatalogChanged(digest=digest)

    def _step(self, at_ns: int, given: Input) -> list[str]:
        outcome = self._engine.step(at_ns, given)
        self._stored += [(at_ns, record) for record in outcome.records]
        return [told(event) for event in outcome.events]

    def _at(self, at_ns: int, *words: str) -> list[str]:
        verb, *rest = words
        if verb == "show":
            return self._step(at_ns, Tick()) + self._show()
        if verb == "crash":
            return self._crash(at_ns)
        return self._step(at_ns, self._input(at_ns, verb, rest))

    def _input(self, at_ns: int, verb: str, rest: list[str]) -> Input:
        plain, options = options_of(rest)
        match verb, plain:
            case "wait", []:
                return Tick()
            case "poll", [device, *codes]:
                return _poll(at_ns, device, codes, options.get("source", "ascend"))
            case "lost", [source, *device]:
                return SourceLost(source=source, reason="no answer", device="".join(device), required=True)
            case "back", [source, *device]:
                return SourceBack(source=source, device="".join(device))
            case "restart" | "reboot", []:
                self._boots += verb == "reboot"
                return Started(boot_id=f"boot-{self._boots}", version="1")
            case "reload", []:
                return self._catalog()
            case "seen", [_, _, *_]:
                return _seen(plain)
            case "gone", [name]:
                return DeviceGone(source="ascend", device=name, reason="gone from the bus")
            case "held", [device, job]:
                return _held(device, job)
            case "above" | "below", [rule, device]:
                return Edge(source="ascend", device=device, rule=rule, above=verb == "above", value=0.0)
            case "counts", [metric, device, value]:
                return CounterMark(source="ascend", device=device, metric=metric, value=int(value))
            case "isolate" | "release", [device, who]:
                until = parse_ns(options["until"]) if "until" in options else None
                return Operator(who=who, what=verb, device=device, reason="service", until_ns=until)
            case code, [device, "occur" | "recover" | "once" as assertion, *flags]:
                return _signal(code, device, assertion, flags, options)
        raise ValueError(f"no such command: {verb} {' '.join(rest)}")

    def _crash(self, at_ns: int) -> list[str]:
        """What the last commit left is all that the next process has."""
        self._step(at_ns, Tick())
        before = self._engine
        self._engine = Engine(self._catalogs)
        for stored_ns, record in self._stored:
            self._engine.replay(stored_ns, record)
        self._engine.resume(before.now_ns)
        same = self._engine.view() == before.view()
        return ["rebuilt as it was" if same else "REBUILT DIFFERENTLY"]

    def _show(self) -> list[str]:
        view = self._engine.view()
        lines = [
            f"{device.name}: {device.level}, {device.verdict}, {device.handling}"
            + ("" if device.observed else ", not observed")
            for device in view.devices
        ]
        lines += [f"open: {one.id} at {one.level}, count {one.count}" for one in view.conditions]
        lines += [f"promoted: {one.id} to {one.level}" for one in view.promotions if one.effective]
        return lines


def _signal(code: str, device: str, assertion: str, flags: list[str], options: dict[str, str]) -> Signal:
    return Signal(
        source=options.get("source", "ascend"),
        device=device,
        code=code,
        assertion=Assertion(assertion),
        severity=int(options["severity"]) if "severity" in options else None,
        count=int(options.get("count", "1")),
        injected="injected" in flags,
        trusted="userspace" not in flags,
    )


def _poll(at_ns: int, device: str, codes: list[str], source: str) -> ActiveSet:
    return ActiveSet(
        source=source,
        device=device,
        codes=tuple(ActiveCode(code=code) for code in codes if code != "incomplete"),
        begun_ns=at_ns - 10**6,
        complete="incomplete" not in codes,
    )


def _seen(words: list[str]) -> DeviceSeen:
    name, identity, *pci = words
    return DeviceSeen(
        source="ascend",
        device=name,
        kind=Kind.CHIP,
        vendor="ascend",
        identity="" if identity == "unreadable" else identity,
        attributes={"pci": pci[0]} if pci else {},
    )


def _held(device: str, job: str) -> Holders:
    holders = () if job == "nobody" else (Holder(pid=7, start_time=1, command="python", job=job),)
    return Holders(device=device, holders=holders)
