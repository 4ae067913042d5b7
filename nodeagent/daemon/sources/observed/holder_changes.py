"""Which processes are on the devices of a source: reported when they are others than before. Pure."""

from nodeagent.core.model import Holder, Holders
from nodeagent.daemon.sources.translate import holders
from nodeagent.wire import Reply


class HolderChanges:
    """What has changed in who holds the devices of one source."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Holder, ...]] = {}

    def changed(self, reply: Reply) -> tuple[list[Holders], bool]:
        """What is to be reported, if anything, and whether a process may have come.

        A reset may wait for nothing but to see its fault once more: a process that has come must be known by
        then. Where processes have only left, it must be known first whether the fault is still there.
        """
        held, before = holders(reply), self._known.get(reply.device)
        if not held.known:
            return ([], False) if self._known.pop(reply.device, None) is None else ([held], True)
        if held.holders == before:
            return [], False
        self._known[reply.device] = held.holders
        return [held], not set(held.holders) <= set(before or ())

    def forget(self, device: str) -> None:
        """It is listed anew, or no longer: whatever its next answer says is news."""
        self._known.pop(device, None)
