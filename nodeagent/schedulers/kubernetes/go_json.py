"""JSON byte for byte as Go writes it, and the check code over it. Pure.

MindCluster's readers compute the SHA-256 of what they have parsed and written again (``EqualDataHash`` of
component/clusterd/pkg/common/util), so one byte that Go would write otherwise makes them refuse the whole.
Keys of objects keep their order here: sort those that are a Go map, and give those of a struct in its order.
"""

import hashlib
import json
from typing import Final

_AS_GO_ESCAPES: Final = {
    ord("<"): "\\u003c",
    ord(">"): "\\u003e",
    ord("&"): "\\u0026",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}
"""``htmlSafeSet`` and ``appendString`` of Go's encoding/json. None of these occurs outside of a text."""


def text_of(value: object) -> str:
    """As ``json.Marshal`` writes it."""
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return plain.translate(_AS_GO_ESCAPES)


def as_map(value: dict[str, object]) -> dict[str, object]:
    """Go writes maps by key, in the order of the bytes, which is that of the characters."""
    return dict(sorted(value.items()))


def check_code(value: object) -> str:
    """As ``MakeDataHash`` of component/ascend-device-plugin/pkg/common/common.go."""
    return hashlib.sha256(text_of(value).encode()).hexdigest()
