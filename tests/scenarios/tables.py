"""The tables of a scenario, built line by line. It runs nothing.

They come into force with ``begin`` or a ``reload``:

    row CODE LEVEL [kind=chip] [user_induced] [notice] [recovery=vendor] [affects=node] [clear_on=recover,10m]
    frequency ID CODE[,CODE] times=3 window=24h level=LEVEL [release=48h] [correlation=30s] [burst=0s]
                                                [at_least=LEVEL] [kind=chip] [in_use] [counted_by=job]
    duration ID CODE fault=20s recover=60s level=LEVEL
    relation ID CODE with=CODE[,CODE] within=3m then=absorb|level|cancel [same=device] [level=LEVEL]
    threshold ID CODE above=90 clear_below=85 for=60s
    counter ID CODE metric=NAME increase=1000 window=24h
    decode part|sensor DIGITS NAME          what the digits of a code without a row mean
    set NAME VALUE                          a setting, such as: set mode graceful, set resets on
    forget CODE|ID                          a row or rule
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, cast

from nodeagent.core.catalog.catalog import (
    Catalog,
    ClearOn,
    CounterRule,
    DurationRule,
    FrequencyRule,
    RelationRule,
    Row,
    ThresholdRule,
)
from nodeagent.core.catalog.codes import Decoding, Sensor, canonical
from nodeagent.core.catalog.settings import JobSettings, Mode, ResetSettings, Settings
from nodeagent.core.model import Affects, CountedBy, Kind, Level, Recovery, ResetMode
from nodeagent.tables.sections.sources import DEFAULT_TRAITS
from tests.scenarios.wording import options_of, parse_ns


class Tables:
    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self._frequency: dict[str, FrequencyRule] = {}
        self._duration: dict[str, DurationRule] = {}
        self._relation: dict[str, RelationRule] = {}
        self._threshold: dict[str, ThresholdRule] = {}
        self._counter: dict[str, CounterRule] = {}
        self._decoded: dict[str, dict[str, str]] = {"part": {}, "sensor": {}}
        self._settings: dict[str, Any] = {}

    def perform(self, verb: str, words: list[str]) -> bool:
        """False for a verb that is not of the tables."""
        verbs: dict[str, Callable[[list[str]], None]] = {
            "row": self._add_row,
            "frequency": self._add_frequency,
            "duration": self._add_duration,
            "relation": self._add_relation,
            "threshold": self._add_threshold,
            "counter": self._add_counter,
            "decode": self._decode,
            "set": self._set,
            "forget": self._forget,
        }
        if verb in verbs:
            verbs[verb](words)
        return verb in verbs

    def catalog(self, digest: str) -> Catalog:
        """The tables as they stand."""
        return Catalog(
            digest=digest,
            rows=dict(self._rows),
            frequency=tuple(self._frequency.values()),
            duration=tuple(self._duration.values()),
            relation=tuple(self._relation.values()),
            threshold=tuple(self._threshold.values()),
            counter=tuple(self._counter.values()),
            decoding=Decoding(
                parts=dict(self._decoded["part"]),
                sensors={digits: Sensor(name=name) for digits, name in self._decoded["sensor"].items()},
            ),
            sources=DEFAULT_TRAITS,
            settings=Settings(**self._settings),
        )

    def _add_row(self, words: list[str]) -> None:
        (code, level, *flags), options = options_of(words)
        self._rows[canonical(code)] = Row(
            code=code,
            kind=Kind(options.get("kind", "chip")),
            vendor="nvidia" if code.startswith("XID") else "ascend",
            name=code,
            level=Level(level),
            notice="notice" in flags,
            user_induced="user_induced" in flags,
            recovery=Recovery(options.get("recovery", "level")),
            affects=Affects(options.get("affects", "self")),
            clear_on=_clear_on(options.get("clear_on", "recover,reset,reboot").split(",")),
        )

    def _add_frequency(self, words: list[str]) -> None:
        (identifier, codes, *flags), options = options_of(words)
        self._frequency[identifier] = FrequencyRule(
            id=identifier,
            codes=tuple(codes.split(",")),
            times=int(options["times"]),
            time_window_ns=parse_ns(options["window"]),
            level=Level(options["level"]),
            release_ns=parse_ns(options["release"]) if "release" in options else None,
            burst_ns=parse_ns(options["burst"]) if "burst" in options else None,
            correlation_ns=parse_ns(options.get("correlation", "30s")),
            kind=Kind(options.get("kind", "chip")),
            at_least=Level(options["at_least"]) if "at_least" in options else None,
            counted_by=CountedBy(options.get("counted_by", "device")),
            in_use="in_use" in flags,
        )

    def _add_duration(self, words: list[str]) -> None:
        (identifier, codes), options = options_of(words)
        self._duration[identifier] = DurationRule(
            id=identifier,
            codes=tuple(codes.split(",")),
            fault_timeout_ns=parse_ns(options["fault"]),
            recover_timeout_ns=parse_ns(options["recover"]),
            level=Level(options["level"]),
        )

    def _add_relation(self, words: list[str]) -> None:
        (identifier, code), options = options_of(words)
        self._relation[identifier] = RelationRule(
            id=identifier,
            code=code,
            with_codes=tuple(options["with"].split(",")),
            within_ns=parse_ns(options["within"]),
            same=cast(Literal["device", "node", "job"], options.get("same", "device")),
            then=cast(Literal["absorb", "level", "cancel"], options["then"]),
            level=Level(options["level"]) if "level" in options else None,
        )

    def _add_threshold(self, words: list[str]) -> None:
        (identifier, code), options = options_of(words)
        self._threshold[identifier] = ThresholdRule(
            id=identifier,
            code=code,
            metric=identifier,
            above=float(options["above"]),
            clear_below=float(options["clear_below"]),
            for_ns=parse_ns(options["for"]),
        )

    def _add_counter(self, words: list[str]) -> None:
        (identifier, code), options = options_of(words)
        self._counter[identifier] = CounterRule(
            id=identifier,
            code=code,
            metric=options["metric"],
            increase=int(options["increase"]),
            time_window_ns=parse_ns(options["window"]),
        )

    def _decode(self, words: list[str]) -> None:
        of, digits, name = words
        self._decoded[of][digits] = name

    def _set(self, words: list[str]) -> None:
        name, value = words
        if name == "mode":
            self._settings[name] = Mode(value)
        elif name == "resets":
            self._settings["reset"] = ResetSettings(mode=ResetMode(value))
        elif name == "jobs":
            self._settings[name] = JobSettings(in_place_registered=value == "registered")
        elif name == "unknown_level":
            self._settings[name] = Level(value)
        else:
            self._settings[f"{name}_ns"] = parse_ns(value)

    def _forget(self, words: list[str]) -> None:
        kinds: tuple[dict[str, Any], ...] = (
            self._frequency,
            self._duration,
            self._relation,
            self._threshold,
            self._counter,
        )
        for name in words:
            self._rows.pop(canonical(name), None)
            for rules in kinds:
                rules.pop(name, None)


def _clear_on(words: list[str]) -> ClearOn:
    names = {word: True for word in words if not word[0].isdigit()}
    quiet = [parse_ns(word) for word in words if word[0].isdigit()]
    return replace(ClearOn(**names), quiet_ns=quiet[0] if quiet else None)
