"""What a worker that has opened a source still owes before the source is observed. Pure."""

from collections.abc import Collection

from nodeagent.wire import CaughtUp


class FirstRead:
    """``devices`` have to answer once, or fail to. One that ``follows`` also says when it has caught up."""

    def __init__(self, devices: Collection[str] = (), follows: bool = False) -> None:
        self.devices = set(devices)
        self.caught_up: CaughtUp | None = None
        self._follows = follows

    @property
    def is_complete(self) -> bool:
        return not self.devices and (self.caught_up is not None or not self._follows)
