"""``[public]`` of nodeagent.toml: which systems may report faults that they found, and how fast each.

The limits are MindCluster's (component/clusterd/pkg/application/publicfault/limiter.go), and so are the
senders that need not be named (component/clusterd/build/publicFaultConfiguration.json).
"""

import re
from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from nodeagent.core.catalog.settings import SECOND_NS, PublicSettings
from nodeagent.toml.fields import Report, read_form, shown
from nodeagent.toml.values import duration

KNOWN_SENDERS: Final = ("CCAE", "fd-online", "pingmesh", "Netmind", "dpcStorage", "dtfsStorage")

MAX_SENDERS: Final = 64
NAME_OF_SENDER: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SENDERS: Final = "senders"

Expiry = Annotated[int, duration(0, 365 * 86_400 * SECOND_NS, '"0s" (never) to "365d"')]
Refill = Annotated[int, duration(SECOND_NS // 1000, 3600 * SECOND_NS, '"1ms" to "1h"')]


class SenderConfig(Struct, frozen=True, kw_only=True):
    """``[public.senders.NAME]``. ``expire_after`` None: as for all. ``certificates`` are the names of those
    who may report as this sender; () for every reporter.
    """

    enabled: bool = True
    expire_after_ns: Expiry | None = field(default=None, name="expire_after")
    certificates: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=253)], ...],
        Meta(max_length=16, description="a list of at most 16 names in client certificates"),
    ] = ()


class PublicConfig(Struct, frozen=True, kw_only=True):
    """``[public]``. ``senders`` has an entry for each that is named; those of ``KNOWN_SENDERS`` need none.

    ``burst`` messages of a sender are taken at once, and one more each ``refill``. ``node_serial`` is this
    node's, for senders that name nodes by it.
    """

    expire_after_ns: Expiry = field(default=86_400 * SECOND_NS, name="expire_after")
    burst: Annotated[int, Meta(ge=1, le=100_000, description="a whole number of messages up to 100000")] = 100
    refill_ns: Refill = field(default=SECOND_NS, name="refill")
    node_serial: Annotated[
        str, Meta(max_length=128, pattern=r"\A[!-~]*\Z", description='text without spaces, or ""')
    ] = ""
    senders: Mapping[str, SenderConfig] = field(default_factory=dict)

    @property
    def allowed(self) -> tuple[str, ...]:
        """The senders that may report."""
        known = {**dict.fromkeys(KNOWN_SENDERS, SenderConfig()), **self.senders}
        return tuple(name for name, sender in known.items() if sender.enabled)

    def certificates_of(self, sender: str) -> tuple[str, ...]:
        """The names of those who may report as it, () for every reporter."""
        named = self.senders.get(sender)
        return () if named is None else named.certificates

    def settings(self) -> PublicSettings:
        """What the core decides by."""
        own = {name: each.expire_after_ns for name, each in self.senders.items()}
        return PublicSettings(
            expire_after_ns=self.expire_after_ns,
            expire_after_by_sender={
                name: expiry_ns for name, expiry_ns in own.items() if expiry_ns is not None
            },
        )


def read_public(table: object, report: Report) -> PublicConfig | None:
    """None after everything wrong was reported."""
    if not isinstance(table, Mapping):
        return read_form(PublicConfig, table, ("public",), report)
    without_senders = {key: value for key, value in table.items() if key != _SENDERS}
    public = read_form(PublicConfig, without_senders, ("public",), report)
    senders = _read_senders(table.get(_SENDERS, {}), report)
    return None if public is None or senders is None else replace(public, senders=senders)


def _read_senders(tables: object, report: Report) -> dict[str, SenderConfig] | None:
    path = ("public", _SENDERS)
    if not isinstance(tables, Mapping):
        report(path, f"{shown(tables)} is given where tables such as [public.senders.CCAE] are needed")
        return None
    if len(tables) > MAX_SENDERS:
        report(path, f"{len(tables)} senders; at most {MAX_SENDERS}")
        return None
    senders = {}
    for name, value in tables.items():
        if not NAME_OF_SENDER.fullmatch(name):
            report((*path, name), 'a sender\'s name has 1 to 64 letters, digits, ".", "_" and "-"')
        elif (sender := read_form(SenderConfig, value, (*path, name), report)) is not None:
            senders[name] = sender
    return senders if len(senders) == len(tables) else None
