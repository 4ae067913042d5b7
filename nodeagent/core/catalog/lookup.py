"""The catalog's rows and rules by code, and from a raw code to a fault: its name and level.

The engine asks this many thousand times a second. It keeps nothing but indexes, decides a level but never a
verdict, and changes nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from nodeagent.core.catalog.catalog import (
    Catalog,
    ClearOn,
    CommonCauseRule,
    DurationRule,
    FrequencyRule,
    RaisingRule,
    RelationRule,
    Row,
    SourceTraits,
    family_of,
)
from nodeagent.core.catalog.codes import canonical, covers, is_hexadecimal
from nodeagent.core.catalog.levels import phases
from nodeagent.core.catalog.settings import Mode
from nodeagent.core.model import PUBLIC, Affects, Condition, Kind, Level

_REMEMBERED_CODES = 8192

Side = tuple[str, str, str]
"""The place of a fault in a relation rule: ``code`` or ``with``, the rule, and the device if that matters."""


def side(name: str, rule: RelationRule, device_id: str) -> Side:
    return name, rule.id, device_id if rule.same == "device" else ""


_WITHOUT_TRAITS = SourceTraits()
_WITHOUT_ROW = ClearOn(recover=True, reset=True, reboot=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """The relation rules that name a code as ``code`` and those that name it in ``with``, also by their
    effect: the code is ``absorbed``, or is the root; it takes its level from one, or gives one.
    """

    as_code: tuple[RelationRule, ...]
    but_absorbed: tuple[RelationRule, ...]
    absorbed: tuple[RelationRule, ...]
    levelled: tuple[RelationRule, ...]
    cancelling: tuple[RelationRule, ...]
    as_with: tuple[RelationRule, ...]
    absorbing: tuple[RelationRule, ...]
    levelling: tuple[RelationRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the catalog has for one code. ``key`` is how it is compared, ``code`` how it is written.

    ``row`` may be its family's (``is_family``); a code with neither closes when the driver reports
    its recovery, and takes its name from its digits, if they give one (``decoded``).
    ``frequency`` is the first rule that names the code, ``relations`` None where none names it.
    ``common_causes`` are the rules that look for it on several devices.
    """

    key: str
    code: str
    row: Row | None
    is_family: bool
    clear_on: ClearOn
    decoded: str | None
    duration: DurationRule | None
    frequency: FrequencyRule | None
    relations: Relations | None
    common_causes: tuple[CommonCauseRule, ...] = ()


class Lookup:
    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.settings = catalog.settings
        self.phases = {level: phases(level, catalog.settings) for level in Level}
        self._gracefully: Lookup | None = None
        self._of_training: Lookup | None = None
        self._facts: dict[str, Facts] = {}
        self._frequency_by_id = {rule.id: rule for rule in catalog.frequency}
        self._frequency: dict[str, FrequencyRule] = {}
        self._frequency_for_all: dict[Kind, FrequencyRule] = {}
        self._duration: dict[str, DurationRule] = {}
        self._related = tuple(
            (rule, canonical(rule.code), tuple(map(canonical, rule.with_codes))) for rule in catalog.relation
        )
        self._raising = {rule.id: rule for rule in catalog.raising}
        self._watching: dict[str, tuple[RaisingRule, ...]] = {}
        for raising in catalog.raising:
            self._watching[raising.watches] = (*self._watching.get(raising.watches, ()), raising)
        for rule in catalog.frequency:
            for code in rule.codes:
                if code == "*":
                    self._frequency_for_all.setdefault(rule.kind, rule)
                else:
                    self._frequency.setdefault(canonical(code), rule)
        for duration in catalog.duration:
            for code in duration.codes:
                self._duration.setdefault(canonical(code), duration)

    @property
    def gracefully(self) -> "Lookup":
        """The same in mode graceful."""
        if self._gracefully is None:
            settings = replace(self.settings, mode=Mode.GRACEFUL)
            is_so = self.settings.mode is Mode.GRACEFUL
            self._gracefully = self if is_so else Lookup(replace(self.catalog, settings=settings))
        return self._gracefully

    @property
    def of_training(self) -> "Lookup":
        """The same for chips that only training uses: no request can be made again on them, so that
        RestartRequest is not tolerated for a while. In mode graceful the job is run again meanwhile.
        """
        if self._of_training is None:
            is_so = self.settings.mode is Mode.GRACEFUL or not self.settings.request_tolerance_ns
            settings = replace(self.settings, request_tolerance_ns=0)
            self._of_training = self if is_so else Lookup(replace(self.catalog, settings=settings))
        return self._of_training

    def facts(self, code: str) -> Facts:
        facts = self._facts.get(code)
        if facts is None:
            if len(self._facts) >= _REMEMBERED_CODES:
                self._facts.clear()
            facts = self._facts[code] = self._find(code)
        return facts

    def source(self, name: str) -> SourceTraits:
        return self.catalog.sources.get(name, _WITHOUT_TRAITS)

    def frequency_rule(self, facts: Facts, kind: Kind) -> FrequencyRule | None:
        """The first rule that names the code, as the vendor does, else the kind's rule for every code."""
        return facts.frequency or self._frequency_for_all.get(kind)

    def frequency_by_id(self, rule_id: str) -> FrequencyRule | None:
        return self._frequency_by_id.get(rule_id)

    def raising_by_id(self, rule_id: str) -> RaisingRule | None:
        return self._raising.get(rule_id)

    def watching(self, what: str) -> tuple[RaisingRule, ...]:
        """The rules that raise a fault of their own from it, or from any of its family."""
        return self._watching.get(what, ()) + self._watching.get(family_of(what), ())

    def _find(self, code: str) -> Facts:
        key, row = canonical(code), self.catalog.row(code)
        is_family = row is not None and row.code.endswith("*")
        if row is not None and not is_family:
            key = canonical(row.code)
        written = key if is_hexadecimal(code.strip()) else code.strip()
        return Facts(
            key=key,
            code=row.code if row is not None and not is_family else written,
            row=row,
            is_family=is_family,
            clear_on=row.clear_on if row is not None else _WITHOUT_ROW,
            decoded=self.catalog.decoding.name(code) if row is None else None,
            duration=self._duration.get(key),
            frequency=self._frequency.get(key),
            relations=self._relations(key),
            common_causes=tuple(
                rule
                for rule in self.catalog.common_cause
                if any(covers(canonical(code), key) for code in rule.codes)
            ),
        )

    def _relations(self, key: str) -> Relations | None:
        as_code = tuple(rule for rule, code, _ in self._related if covers(code, key))
        as_with = tuple(rule for rule, _, codes in self._related if any(covers(code, key) for code in codes))
        if not as_code and not as_with:
            return None
        return Relations(
            as_code=as_code,
            but_absorbed=tuple(rule for rule in as_code if rule.then != "absorb"),
            absorbed=_that(as_code, "absorb"),
            levelled=_that(as_code, "level"),
            cancelling=_that(as_code, "cancel"),
            as_with=as_with,
            absorbing=_that(as_with, "absorb"),
            levelling=_that(as_with, "level"),
        )


def _that(rules: Iterable[RelationRule], then: str) -> tuple[RelationRule, ...]:
    return tuple(rule for rule in rules if rule.then == then)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A classified code. ``kind`` None: that of the device it came on."""

    name: str
    level: Level
    kind: Kind | None = None
    affects: Affects = Affects.SELF
    user_induced: bool = False
    unknown: bool = False


def classify(lookup: Lookup, source: str, facts: Facts, severity: int | None) -> Fault:
    """``severity`` is the driver's, 0..3, or what was learnt of the code, None if neither."""
    row = facts.row
    if row is None:
        name = facts.decoded if lookup.source(source).graded and facts.decoded is not None else facts.code
        return Fault(name=name, level=_unknown_level(lookup, source, facts.key, severity), unknown=True)
    override = lookup.settings.unknown_level if facts.is_family else None
    return Fault(
        name=row.name,
        level=override or row.level,
        kind=row.kind,
        affects=row.affects,
        user_induced=row.user_induced,
        unknown=facts.is_family,
    )


def is_undecided(lookup: Lookup, condition: Condition) -> bool:
    """Whether its level depends on a severity that was not reported: until then the worst is assumed."""
    if not condition.grade.unknown or condition.grade.severity is not None or condition.origin.injected:
        return False
    facts = lookup.facts(condition.code)
    if facts.row is not None:
        return False
    mildest, worst = (_unknown_level(lookup, condition.source, facts.key, severity) for severity in (0, None))
    return mildest is not worst


def _unknown_level(lookup: Lookup, source: str, key: str, severity: int | None) -> Level:
    """By the severity that the source reports, where it grades its codes; those of other sources inform only.
    What another system reports is passed on to jobs: no table has it take anything out of service.
    """
    if source == PUBLIC:
        return Level.SUB_HEALTH
    if lookup.settings.unknown_level is not None:
        return lookup.settings.unknown_level
    traits = lookup.source(source)
    if not traits.graded:
        return Level.NOT_HANDLE
    if traits.is_of_network(key):
        return Level.PRE_SEPARATE_NPU
    return Level.NOT_HANDLE if severity in (0, 1) else Level.SEPARATE_NPU
