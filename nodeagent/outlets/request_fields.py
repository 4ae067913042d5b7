"""Checks of what callers write into requests: a value, or a refusal that names the field and what is right.

It knows forms and bounds only, not what a value means.
"""

from collections.abc import Mapping
from typing import Final

from nodeagent.core.model import Assertion
from nodeagent.outlets import messages
from nodeagent.outlets.pb import types_pb2
from nodeagent.outlets.refusal import Refusal, Status

MAX_WORD_CHARACTERS: Final = 128
MAX_REASON_CHARACTERS: Final = 512
MAX_EVIDENCE: Final = 16
MAX_EVIDENCE_CHARACTERS: Final = 2048


def word(field: str, text: str, most_characters: int = MAX_WORD_CHARACTERS) -> str:
    if not 0 < len(text) <= most_characters or not text.isprintable() or not text.strip():
        wanted = f"1 to {most_characters} printable characters are needed"
        raise Refusal(Status.INVALID_ARGUMENT, f"{field}: {wanted}, not {text[:40]!r}")
    return text


def reason(text: str) -> str:
    return word("reason", text, MAX_REASON_CHARACTERS)


def optional_reason(text: str) -> str:
    return reason(text) if text else ""


def evidence(given: Mapping[str, str]) -> dict[str, str]:
    if len(given) > MAX_EVIDENCE:
        raise Refusal(Status.INVALID_ARGUMENT, f"evidence: {len(given)} entries; at most {MAX_EVIDENCE}")
    for key, value in given.items():
        word("evidence", key)
        if len(value) > MAX_EVIDENCE_CHARACTERS:
            told = f"{key} has {len(value)} characters; at most {MAX_EVIDENCE_CHARACTERS}"
            raise Refusal(Status.INVALID_ARGUMENT, f"evidence: {told}")
    return dict(given)


def assertion(number: types_pb2.Assertion, where_not_set: Assertion | None) -> Assertion:
    """``where_not_set`` None: it must be set."""
    if number == types_pb2.ASSERTION_UNSPECIFIED and where_not_set is not None:
        return where_not_set
    given = messages.ASSERTION_OF.get(number)
    if given is None:
        words = ", ".join(types_pb2.Assertion.Name(known) for known in messages.ASSERTION_OF)
        raise Refusal(Status.INVALID_ARGUMENT, f"assertion: {number} is not one of {words}")
    return given
