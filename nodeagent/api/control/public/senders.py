"""The systems that may report faults: which, how fast each, and what became of their messages.

It knows nothing of faults.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from nodeagent.api.access.credentials import Caller, Role
from nodeagent.api.refusal import Refusal, Status
from nodeagent.config.public import PublicConfig
from nodeagent.core.model import Reported

ACCEPTED: Final = "accepted"
UNKNOWN_SENDER: Final = "(unknown)"
"""Stands for every name that is not configured: a caller could make up any number of them."""


class Senders:
    """``config`` is replaced at a reload. Counts are read by another thread. ``now_s`` is CLOCK_MONOTONIC."""

    def __init__(self, config: PublicConfig, now_s: Callable[[], float] = time.monotonic) -> None:
        self.config = config
        self.messages = Counter[tuple[str, str]]()
        """The keys are sender and result: ``accepted``, or the status in small letters."""
        self.faults = Counter[tuple[str, str]]()
        """The keys are sender and what became of the fault."""
        self.turn = asyncio.Lock()
        """Held by the message that is checked and judged: all else has its turns between two messages."""
        self._now_s = now_s
        self._paid_until_s: dict[str, float] = {}

    def admit(self, sender: str, caller: Caller) -> None:
        """One more message. Raises Refusal: it is none of the senders, or not the caller's, or too fast."""
        if sender not in self.config.allowed:
            known = ", ".join(self.config.allowed)
            wanted = f"must be one of {known}; [public.senders.NAME] of nodeagent.toml adds one"
            raise Refusal(Status.INVALID_ARGUMENT, f"sender: {sender[:64]!r}: {wanted}")
        certificates = self.config.certificates_of(sender)
        if certificates and caller.role is not Role.OPERATOR and caller.name not in certificates:
            names = ", ".join(certificates)
            problem = (
                f"{caller.who} may not report as {sender}; public.senders.{sender}.certificates has {names}"
            )
            raise Refusal(Status.PERMISSION_DENIED, f"sender: {problem}")
        if wait_s := self._pay(sender):
            limit = f"{self.config.burst} messages at once, then one each {self.config.refill_ns / 1e9:g} s"
            problem = f"{sender} is too fast ({limit}); try again in {_in_words(wait_s)}"
            raise Refusal(Status.RESOURCE_EXHAUSTED, f"sender: {problem}", retry_after_s=wait_s)

    def accepted(self, sender: str, outcomes: Iterable[Reported]) -> None:
        self.messages[sender, ACCEPTED] += 1
        self.faults.update((sender, str(outcome)) for outcome in outcomes)

    def refused(self, sender: str, status: Status) -> None:
        known = sender if sender in self.config.allowed else UNKNOWN_SENDER
        self.messages[known, status.name.lower()] += 1

    def _pay(self, sender: str) -> float:
        """How long to wait, 0 where it was paid. A refused message costs nothing."""
        now_s, refill_s = self._now_s(), self.config.refill_ns / 1e9
        paid_until_s = max(self._paid_until_s.get(sender, 0.0), now_s) + refill_s
        wait_s = paid_until_s - now_s - self.config.burst * refill_s
        # A float's rounding is no reason to wait.
        if wait_s > refill_s * 1e-6:
            return wait_s
        self._paid_until_s[sender] = paid_until_s
        return 0.0


def _in_words(length_s: float) -> str:
    """The length rounded up to two digits: who waits so long is not refused again."""
    return f"{math.ceil(length_s)} s" if length_s >= 10 else f"{math.ceil(length_s * 10) / 10:g} s"
