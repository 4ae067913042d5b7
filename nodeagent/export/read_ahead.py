"""Reads a stream in a thread of its own, so that what came while the receiver was busy is sent together.

The daemon sends a message for each turn: in a storm many messages of one event each. Sent one by one, a slow
receiver would get one event for each of its answers, and fall further and further behind.
"""

import queue
import threading
from collections.abc import Generator
from types import TracebackType
from typing import Any, Final, Self

from nodeagent.client import ClientError

_MOST_MESSAGES: Final = 64
"""Of up to 64 events each. The daemon keeps the rest."""

_ROOM_S: Final = 0.5
_ENDED: Final = ClientError("UNAVAILABLE", "the daemon ended the stream")


class ReadAhead:
    """``stream`` is read from now on, and closed at the end of the context."""

    def __init__(self, stream: Generator[Any, None, None]) -> None:
        self._stream = stream
        self._read: queue.Queue[Any] = queue.Queue(_MOST_MESSAGES)
        self._is_left = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stream", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_left.set()

    def next(self) -> list[Any]:
        """All messages that have come, at least one; waits for it. Raises ``ClientError`` at the end."""
        messages = [self._checked(self._read.get())]
        while len(messages) < _MOST_MESSAGES:
            try:
                message = self._read.get_nowait()
            except queue.Empty:
                break
            if isinstance(message, ClientError):
                self._read.put(message)  # the next call raises it; nothing is read after it
                break
            messages.append(message)
        return messages

    def _checked(self, message: Any) -> Any:
        if isinstance(message, ClientError):
            raise message
        return message

    def _run(self) -> None:
        try:
            for message in self._stream:
                if not self._is_put(message):
                    return
            self._is_put(_ENDED)
        except ClientError as error:
            self._is_put(error)
        finally:
            self._stream.close()

    def _is_put(self, message: Any) -> bool:
        """Waits for room; False once the reader has left."""
        while not self._is_left.is_set():
            try:
                self._read.put(message, timeout=_ROOM_S)
            except queue.Full:
                continue
            return True
        return False
