"""Why we drain a node, in words that Slurm keeps and that we know again. Pure.

``sinfo -R`` shows 20 characters of a reason (sinfo.c, the default format ``%20E %9u %19H %N``): the code and
the device stand first, our mark last. A reason of any other form is another's,
also where a person quotes ours in his own.
"""

import re
from typing import Final

_OWN: Final = re.compile(r"[A-Za-z0-9_./:-]+ [A-Za-z0-9_./:-]+(?: \+\d+)? \(nodeagent #\d+\)")
_NO_WORD: Final = re.compile(r"[^A-Za-z0-9_./:-]+")
_MOST_CHARACTERS: Final = 64


def reason(code: str, device: str, others: int, seq: int) -> str:
    """``80E18005 npu3 (nodeagent #4711)``. ``others`` devices take no new work either."""
    more = (f"+{others}",) if others else ()
    return " ".join((_word(code), _word(device), *more, f"(nodeagent #{seq})"))


def is_own(text: str) -> bool:
    return _OWN.fullmatch(text) is not None


def _word(text: str) -> str:
    """Without what could end it, for Slurm or for a script that reads ``sinfo``."""
    return _NO_WORD.sub("_", text)[:_MOST_CHARACTERS] or "unknown"
