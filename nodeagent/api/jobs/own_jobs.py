"""The part of the daemon's state that every user may read: the jobs that processes of this user supervise.

The kernel shows which user asks. In a pod or a container that is the pod or the container: its users are not
those of the node. Jobs that only hooks have claimed belong to no known user, and are left out. Events are
those in memory, from the last start of a job of that name: an earlier one may have been another user's. It
shows nothing else of the node.
"""

from collections.abc import Iterator
from typing import Final

from google.protobuf.message import Message

from nodeagent.api import messages
from nodeagent.core.model import EventKind, JobView
from nodeagent.core.state.names import answers_for
from nodeagent.job.lines import AskOwnJobs, OwnJob, OwnJobEvent, OwnJobsEnd, ToOwner
from nodeagent.store.event_feed import EventFeed
from nodeagent.store.records import StoredEvent

MOST_EVENTS: Final = 50


def answer(ask: AskOwnJobs, feed: EventFeed, caller: str) -> Iterator[ToOwner]:
    """The lines of the answer, in their order. ``caller`` is as ``answers_for`` gives it."""
    published = messages.Published(feed.current)
    own = [
        job for job in feed.current.view.jobs if job.peer and answers_for(job.name, job.peer.uid) == caller
    ]
    for job in own:
        yield OwnJob(message=_json(messages.job(published, job)))
    for event in _events(feed, next((job for job in own if job.name == ask.job), None)):
        yield OwnJobEvent(message=_json(messages.event(event)))
    yield OwnJobsEnd()


def _events(feed: EventFeed, job: JobView | None) -> list[StoredEvent]:
    """The latest of its events, oldest first."""
    if job is None:
        return []
    found: list[StoredEvent] = []
    for stored in reversed(feed.newest()):
        if stored.event.job is None or stored.event.job.name != job.name:
            continue
        found.append(stored)
        if stored.event.kind is EventKind.JOB_BEGUN or len(found) == MOST_EVENTS:
            break
    return found[::-1]


def _json(message: Message) -> str:
    from google.protobuf.json_format import MessageToJson  # not at the start of the daemon

    return MessageToJson(message, indent=None)
