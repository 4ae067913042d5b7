"""One thread that may be left hanging: calls that touch the disk run there, in order.

A call into a dead filesystem cannot be interrupted. So the thread is a daemon thread that is never
joined: once abandoned it drops what is queued, and when its call returns at last it runs a closing
call and is finished. It knows nothing of SQLite.
"""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class AbandonedError(Exception):
    """The call was queued on a thread that hangs: it was not made, or its outcome is unknown."""


async def within(limit_s: float, name: str, call: Callable[[], T]) -> T:
    """One call, on a thread of its own that is left behind where it hangs.

    Raises what the call raises, and TimeoutError after the limit.
    """
    thread = DiskThread(name)
    try:
        async with asyncio.timeout(limit_s):
            return await thread.run(call)
    except TimeoutError:
        raise TimeoutError("the disk does not answer") from None
    finally:
        thread.abandon()


def _nothing() -> None:
    pass


class DiskThread:
    """Runs calls one after the other; ``closing`` is the last one, also after ``abandon``; then ``ended``."""

    def __init__(self, name: str, closing: Callable[[], None] = _nothing) -> None:
        self._loop = asyncio.get_running_loop()
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._closing = closing
        self._abandoned = False
        self._waiting: set[asyncio.Future[Any]] = set()
        self._finished = threading.Event()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        """Whether no call of this thread can touch the disk any more."""
        return self._finished.is_set()

    def run(self, call: Callable[[], T]) -> asyncio.Future[T]:
        """Queue ``call``; the future has its result or exception, AbandonedError after ``abandon``."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.add(future)
        future.add_done_callback(self._waiting.discard)

        def serve() -> None:
            try:
                result = call()
            except Exception as error:  # noqa: BLE001 - the thread's boundary: all goes to the caller
                self._post(_fail, future, error)
            else:
                self._post(_resolve, future, result)

        self._calls.put(serve)
        return future

    def abandon(self) -> None:
        """Run nothing more but the closing call. Returns at once, whatever the thread is stuck in."""
        self._abandoned = True
        self._calls.put(None)
        for future in tuple(self._waiting):
            if not future.done():
                future.set_exception(AbandonedError("the disk hangs or failed"))
                # Read once here, so that no caller has to.
                future.exception()

    def finish(self) -> asyncio.Future[None]:
        """Run what is queued, then the closing call; the future ends after it."""
        self._calls.put(None)
        return self.ended

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None and not self._abandoned:
            call()
            del call
        try:
            self._closing()
        finally:
            self._finished.set()
            self._post(_resolve, self.ended, None)

    def _post(self, settle: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(settle, *arguments)
        except RuntimeError:
            # The loop was closed while this call hung: no task is left to be notified.
            self._abandoned = True


def _resolve(future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[object]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
