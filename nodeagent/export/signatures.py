"""Signatures of webhooks: the symmetric scheme, v1, of the Standard Webhooks specification.

The receiver checks that the body is ours, and is not an old one sent again. Secrets are read from files, one
each; with two files each request has two signatures, so that the receiver can change to the new secret.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nodeagent.export.connection import SetupError, read_text

_PREFIX: Final = "whsec_"
_LEAST_BYTES, _MOST_BYTES = 24, 64
"""The specification asks for a secret of this length."""


def read_secret(path: Path) -> bytes:
    """Raises ``SetupError``, which never quotes the secret."""
    text = read_text(path, "--secret").strip()
    wanted = f"{_PREFIX} and the base64 form of {_LEAST_BYTES} to {_MOST_BYTES} random bytes are needed"
    try:
        secret = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise SetupError(f"--secret {path}: {wanted}") from None
    if not text.startswith(_PREFIX) or not _LEAST_BYTES <= len(secret) <= _MOST_BYTES:
        raise SetupError(f"--secret {path}: {wanted}")
    return secret


def signature_headers(secrets: Sequence[bytes], message_id: str, now_s: int, body: bytes) -> dict[str, str]:
    """The headers that the receiver checks; none without a secret. ``now_s`` is unix time."""
    if not secrets:
        return {}
    signed = b".".join((message_id.encode(), str(now_s).encode(), body))
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": " ".join(f"v1,{_signature(secret, signed)}" for secret in secrets),
    }


def _signature(secret: bytes, signed: bytes) -> str:
    return base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
