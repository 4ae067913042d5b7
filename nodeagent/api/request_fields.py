"""Checks of what callers write into requests: a value, or a refusal that names the field and what is right.

It knows forms and bounds only, not what a value means.
"""

from collections.abc import Mapping
from typing import Final

from nodeagent.api.refusal import Refusal, Status
from nodeagent.core.model import Assertion
from nodeagent.messages import enums
from nodeagent.messages.pb import types_pb2

MAX_WORD_CHARACTERS: Final = 128
MAX_REASON_CHARACTERS: Final = 512
MAX_OWNER_CHARACTERS: Final = 64
MAX_EVIDENCE: Final = 16
MAX_EVIDENCE_CHARACTERS: Final = 2048

_NOT_IN_OWNERS: Final = ":/#"
_OF_THE_DAEMON: Final = "nodeagent"


def word(field: str, text: str, most_characters: int = MAX_WORD_CHARACTERS) -> str:
    if not 0 < len(text) <= most_characters or not text.isprintable() or not text.strip():
        wanted = f"1 to {most_characters} printable characters are needed"
        raise Refusal(Status.INVALID_ARGUMENT, f"{field}: {wanted}, not {text[:40]!r}")
    return text


def reason(text: str) -> str:
    return word("reason", text, MAX_REASON_CHARACTERS)


def optional_reason(text: str) -> str:
    return reason(text) if text else ""


def owner(text: str, otherwise: str) -> str:
    """In whose name an order is given; ``otherwise`` where nobody is named."""
    if not text:
        return otherwise
    if not is_owner(text):
        wanted = f'1 to {MAX_OWNER_CHARACTERS} printable characters without spaces and ":/#"'
        raise Refusal(Status.INVALID_ARGUMENT, f"owner: {wanted} are needed, not {text[:40]!r}")
    return text


def is_owner(text: str) -> bool:
    """Whether a hold may be set in this name: not in that of a caller ("uid:0"), nor in the daemon's own."""
    if not 0 < len(text) <= MAX_OWNER_CHARACTERS or text == _OF_THE_DAEMON:
        return False
    return text.isprintable() and not any(each.isspace() or each in _NOT_IN_OWNERS for each in text)


def evidence(given: Mapping[str, str]) -> dict[str, str]:
    if len(given) > MAX_EVIDENCE:
        raise Refusal(Status.INVALID_ARGUMENT, f"evidence: {len(given)} entries; at most {MAX_EVIDENCE}")
    for key, value in given.items():
        word("evidence", key)
        if len(value) > MAX_EVIDENCE_CHARACTERS:
            problem = f"{key} has {len(value)} characters; at most {MAX_EVIDENCE_CHARACTERS}"
            raise Refusal(Status.INVALID_ARGUMENT, f"evidence: {problem}")
        if not value.isprintable():
            problem = f"{key}: printable characters are needed, not {value[:40]!r}"
            raise Refusal(Status.INVALID_ARGUMENT, f"evidence: {problem}")
    return dict(given)


def assertion(number: types_pb2.Assertion, where_not_set: Assertion | None) -> Assertion:
    """``where_not_set`` None: it must be set."""
    if number == types_pb2.ASSERTION_UNSPECIFIED and where_not_set is not None:
        return where_not_set
    given = enums.ASSERTION_OF.get(number)
    if given is None:
        words = ", ".join(types_pb2.Assertion.Name(known) for known in enums.ASSERTION_OF)
        raise Refusal(Status.INVALID_ARGUMENT, f"assertion: {number} is not one of {words}")
    return given
