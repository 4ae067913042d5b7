"""What is done with each piece of news, in order for each node: it is shown and given to a command, then its
position is kept.

Nodes do not wait for each other, but for a place where commands run.
"""

from collections.abc import Awaitable, Callable, Collection

from nodeagent.client import Event, EventKind, Position
from nodeagent.fleet.execution import Execution
from nodeagent.fleet.news import News
from nodeagent.fleet.positions import Positions

Show = Callable[[News], Awaitable[None]]
Encode = Callable[[News], bytes]


class Delivery:
    """``encode`` makes what a command reads. ``kinds`` of events are passed on, all where none is named."""

    def __init__(
        self,
        *,
        show: Show,
        encode: Encode,
        kinds: Collection[EventKind] = (),
        execution: Execution | None = None,
        positions: Positions | None = None,
    ) -> None:
        self._show = show
        self._encode = encode
        self._kinds = frozenset(kinds)
        self._execution = execution
        self._positions = positions

    def position_of(self, node: str) -> Position | None:
        """Where to go on; None: with the whole state."""
        return None if self._positions is None else self._positions.of(node)

    async def deliver(self, news: News) -> None:
        """Ends when its effect is done."""
        if self._is_wanted(news):
            await self._show(news)
            if self._execution is not None and news.is_durable:
                await self._execution.run(news, self._encode(news))
        if news.position is not None:
            self.pass_over(news.node.endpoint.name, news.position)

    def pass_over(self, node: str, position: Position) -> None:
        """Everything up to there is done."""
        if self._positions is not None:
            self._positions.note(node, position)

    def _is_wanted(self, news: News) -> bool:
        return not self._kinds or not isinstance(news.value, Event) or news.value.kind in self._kinds
