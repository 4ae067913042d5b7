"""The systems that may report faults: which, how fast each, and the results of their messages.

It knows nothing of faults.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from nodeagent.api.access.credentials import Caller, Role
from nodeagent.api.refusal import Refusal, Status
from nodeagent.config.public import NAME_OF_SENDER, PublicConfig
from nodeagent.core.model import Reported

ACCEPTED: Final = "accepted"
UNKNOWN_SENDER: Final = "(unknown)"
"""Counted in place of every name that is not configured: a caller could make up any number of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporter:
    """The origin of a message. ``by`` is the caller where others may use the sender's name too, otherwise "".
    ``ends_all``: the caller may also end faults that others opened under that name.
    """

    sender: str
    by: str
    ends_all: bool


class Senders:
    """``config`` is replaced at a reload. Counts are read by another thread. ``now_s`` is CLOCK_MONOTONIC."""

    def __init__(self, config: PublicConfig, now_s: Callable[[], float] = time.monotonic) -> None:
        self.config = config
        self.messages = Counter[tuple[str, str]]()
        """The keys are sender and result: ``accepted``, or the status in small letters."""
        self.faults = Counter[tuple[str, str]]()
        """The keys are sender and outcome of the fault."""
        self.turn = asyncio.Lock()
        """Held while a message is checked and judged: other work is done between two messages."""
        self._now_s = now_s
        self._paid_until_s: dict[str, float] = {}

    def admit(self, sender: str, caller: Caller) -> Reporter:
        """One more message. Raises ``Refusal`` for an unknown sender, one that the caller may not use, and
        too many messages.
        """
        self._check(sender, caller)
        certificates = self.config.certificates_of(sender)
        is_operator = caller.role is Role.OPERATOR
        if certificates and not is_operator and caller.name not in certificates:
            names = ", ".join(certificates)
            problem = (
                f"{caller.who} may not report as {sender}; public.senders.{sender}.certificates has {names}"
            )
            raise Refusal(Status.PERMISSION_DENIED, f"sender: {problem}")
        # A client that reports under its own name has an allowance of its own.
        payer = sender if sender in self.config.allowed else caller.name or UNKNOWN_SENDER
        if wait_s := self._pay(payer):
            limit = f"{self.config.burst} messages at once, then one each {self.config.refill_ns / 1e9:g} s"
            problem = f"{sender} is too fast ({limit}); try again in {_rounded_up(wait_s)}"
            raise Refusal(Status.RESOURCE_EXHAUSTED, f"sender: {problem}", retry_after_s=wait_s)
        by = "" if certificates else caller.identity
        return Reporter(sender=sender, by=by, ends_all=is_operator or bool(certificates))

    def accepted(self, sender: str, outcomes: Iterable[Reported]) -> None:
        counted = self._counted_as(sender)
        self.messages[counted, ACCEPTED] += 1
        self.faults.update((counted, str(outcome)) for outcome in outcomes)

    def refused(self, sender: str, status: Status) -> None:
        self.messages[self._counted_as(sender), status.name.lower()] += 1

    def _check(self, sender: str, caller: Caller) -> None:
        """Raises ``Refusal`` for a name that is not configured, except of an operator, who may use any, and
        of a client under the name of its own certificate.
        """
        if sender in self.config.allowed:
            return
        own = caller.role is Role.OPERATOR or sender == caller.name
        if own and sender not in self.config.senders and NAME_OF_SENDER.fullmatch(sender):
            return
        known = ", ".join(self.config.allowed)
        wanted = f"must be one of {known}; [public.senders.NAME] of nodeagent.toml adds one"
        raise Refusal(Status.INVALID_ARGUMENT, f"sender: {sender[:64]!r}: {wanted}")

    def _counted_as(self, sender: str) -> str:
        return sender if sender in self.config.allowed else UNKNOWN_SENDER

    def _pay(self, sender: str) -> float:
        """How long to wait, 0 where the message is admitted. A refused message costs nothing."""
        now_s, refill_s = self._now_s(), self.config.refill_ns / 1e9
        paid_until_s = max(self._paid_until_s.get(sender, 0.0), now_s) + refill_s
        wait_s = paid_until_s - now_s - self.config.burst * refill_s
        # A float's rounding is no reason to wait.
        if wait_s > refill_s * 1e-6:
            return wait_s
        self._paid_until_s[sender] = paid_until_s
        return 0.0


def _rounded_up(length_s: float) -> str:
    """The length rounded up to two digits: after this time the sender is not refused again."""
    return f"{math.ceil(length_s)} s" if length_s >= 10 else f"{math.ceil(length_s * 10) / 10:g} s"
