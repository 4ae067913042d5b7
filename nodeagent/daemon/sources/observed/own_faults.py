"""The agent's own faults of a source and its devices: which of them stand, so that each is raised once. Pure.

The first ``recovered`` of each is emitted though this process never raised the fault: an earlier one may
have, and nobody else can close it.
"""

from collections.abc import Collection

from nodeagent.core.model import Assertion, Signal
from nodeagent.daemon.sources.translate import fault


class OwnFaults:
    """The faults of one source. A device is named as the worker names it."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._standing: set[tuple[str, str]] = set()
        self._recovery_sent: set[tuple[str, str]] = set()

    def stands(self, code: str, device: str) -> bool:
        return (code, device) in self._standing

    def on(self, code: str) -> Collection[str]:
        """The devices on which it stands."""
        return [device for each, device in self._standing if each == code]

    def began(self, code: str, device: str, reason: str) -> list[Signal]:
        """The fault began: it is raised, unless it stands already."""
        return [] if self.stands(code, device) else self.occurred(code, device, reason)

    def occurred(self, code: str, device: str, reason: str) -> list[Signal]:
        """The fault occurred: it is raised each time."""
        self._standing.add((code, device))
        return [self._signal(code, device, Assertion.OCCUR, reason)]

    def recovered(self, code: str, device: str) -> list[Signal]:
        is_news = self.stands(code, device) or (code, device) not in self._recovery_sent
        self._standing.discard((code, device))
        self._recovery_sent.add((code, device))
        return [self._signal(code, device, Assertion.RECOVER)] if is_news else []

    def forget_all_but(self, devices: Collection[str]) -> None:
        """Another part may have the name of one that is listed no longer."""
        self._recovery_sent = {(code, device) for code, device in self._recovery_sent if device in devices}

    def _signal(self, code: str, device: str, assertion: Assertion, reason: str = "") -> Signal:
        return fault(code, device, assertion, source=self._source, reason=reason)
