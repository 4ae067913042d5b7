"""Syslog: a record as a message of RFC 5424, and messages counted by octets as RFC 5425 and RFC 6587 have it.

Messages are bounded: a receiver should take 2048 octets (RFC 5424, section 6.1). What is longer is cut at the
end of its text, never within the keys.
"""

import re
from collections.abc import Mapping
from typing import Final

import nodeagent
from nodeagent.export.records import ExportRecord

LARGEST_BYTES: Final = 2048
_LARGEST_VALUE: Final = 128
"""Octets of one value; 11 of them and the text fit."""

_BOM: Final = b"\xef\xbb\xbf"
"""Before a text in UTF-8 that is more than ASCII (RFC 5424, section 6.4). rsyslog keeps it as a part
of the text, so a text that does not need it has none.
"""

OWN_ID: Final = "nodeagent@0"
"""The name of our structured data. It needs a private enterprise number, and the project has none: 0 is
reserved by IANA, so no other data has this name. 32473 is for documentation only (RFC 5612).
"""

FACILITIES: Final = {
    name: number
    for number, name in (
        *enumerate(("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron")),
        (10, "authpriv"),
        *((16 + number, f"local{number}") for number in range(8)),
    )
}

_IN_DATA: Final = (
    *("id", "seq", "node_id", "kind", "device", "device_id", "code", "level", "verdict", "handling"),
    *("injected", "reason", "missed_from_seq", "missed_to_seq"),
)
"""The keys of a record that are structured data. The node is HOSTNAME, and the name of the code is in the
text.
"""

_ID: Final = re.compile(r"[!#-<>?A-\\^-~]{1,30}@[0-9]+(\.[0-9]+)*")
_ESCAPED: Final = re.compile(r'["\\\]]')
_NOT_PRINTABLE: Final = re.compile(r"[^!-~]")

MEANINGS: Final = {
    "PRI": "the facility and the severity: error 3, warning 4, notice 5, informational 6",
    "TIMESTAMP": "when it happened, with microseconds",
    "HOSTNAME": "the name of the node",
    "APP-NAME": "`nodeagent`",
    "PROCID": "`-`: a record does not change with the process that sends it",
    "MSGID": "the kind of the event, or `resync`",
    "[origin]": "`software` and `swVersion`, as RFC 5424 registers them",
    f"[{OWN_ID}]": " ".join(f"`{key}`" for key in _IN_DATA),
    "MSG": "device, kind, code, its name and the verdict; with a byte order mark where it is not ASCII",
}


def is_data_id(text: str) -> bool:
    """Whether structured data may have this name: NAME@NUMBER (RFC 5424, section 6.3.2)."""
    return _ID.fullmatch(text) is not None and len(text) <= 32


def message(record: ExportRecord, facility: int, data_id: str) -> bytes:
    """One message, without its length."""
    header = " ".join(
        (
            f"<{8 * facility + record.severity.syslog}>1",
            record.time,
            _header_field(record.node, 255),
            "nodeagent",
            "-",
            _header_field(record.kind, 32),
        )
    )
    keys = record.keys()
    own: dict[str, str | int | bool] = {key: keys[key] for key in _IN_DATA if key in keys}
    origin = {"software": "nodeagent", "swVersion": nodeagent.__version__}
    head = f"{header} {_element('origin', origin)}{_element(data_id, own)} ".encode()
    text = _printable(record.text)
    if not text.isascii():
        head += _BOM
    return head + cut(text, LARGEST_BYTES - len(head))


def counted(text: bytes) -> bytes:
    """With its length before it: a message may hold any octet (RFC 5425, section 4.3)."""
    return b"%d %b" % (len(text), text)


def cut(text: str, size: int) -> bytes:
    """At most so many octets in UTF-8, no character in halves."""
    encoded = text.encode(errors="replace")
    return encoded if len(encoded) <= size else encoded[:size].decode(errors="ignore").encode()


def _printable(text: str) -> str:
    """As in the journal: a line break in a text of others cannot begin a line in a file of the receiver."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


def _header_field(text: str, size: int) -> str:
    """Printable US-ASCII without a blank; ``-`` for nothing (RFC 5424, section 6)."""
    return _NOT_PRINTABLE.sub("_", text)[:size] or "-"


def _element(data_id: str, values: Mapping[str, str | int | bool]) -> str:
    pairs = "".join(f' {key}="{_value(value)}"' for key, value in values.items())
    return f"[{data_id}{pairs}]"


def _value(value: str | int | bool) -> str:
    r"""``"``, ``\`` and ``]`` get a backslash (RFC 5424, section 6.3.3)."""
    text = "true" if value is True else _printable(str(value))
    return _ESCAPED.sub(r"\\\g<0>", cut(text, _LARGEST_VALUE).decode())
