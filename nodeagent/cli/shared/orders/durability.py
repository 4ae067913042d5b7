"""What is shown of an order that is in force and not on the disk. It is no failure: the order was taken."""

from typing import Protocol

from nodeagent.cli.shared.output import note


class Answer(Protocol):
    """The answer to any order."""

    not_durable_reason: str


def warn(answer: Answer) -> None:
    """On standard error, where the order would not outlive the daemon."""
    if answer.not_durable_reason:
        why = f"the store's disk fails ({answer.not_durable_reason})"
        note(f"nodeagent: not durable: {why}; this order is lost if the daemon restarts")
