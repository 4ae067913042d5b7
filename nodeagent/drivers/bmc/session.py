"""One reading of the BMC: its requests share one time limit. A BMC that is busy is asked again within it."""

import time
from typing import Final

from nodeagent.drivers.bmc.ipmi import NODE_BUSY, Bmc, Refused

ANSWER_LIMIT_S: Final = 5.0
"""So long one answer may take; ipmi_kcs_sm.c of the kernel gives the BMC as long for each byte
(OBF_RETRY_TIMEOUT).
"""

READING_LIMIT_S: Final = 20.0
BUSY_PAUSE_S: Final = 0.2
BUSY_TRIES: Final = 5


class Session:
    """``limit_s`` from now on."""

    def __init__(self, bmc: Bmc, limit_s: float = READING_LIMIT_S) -> None:
        self._bmc = bmc
        self._until_s = time.monotonic() + limit_s

    def ask(self, what: str, netfn: int, command: int, data: bytes = b"") -> bytes:
        """As ``Bmc.ask``."""
        for _ in range(BUSY_TRIES - 1):
            try:
                return self._ask_once(what, netfn, command, data)
            except Refused as refused:
                if refused.code != NODE_BUSY:
                    raise
            time.sleep(BUSY_PAUSE_S)
        return self._ask_once(what, netfn, command, data)

    def _ask_once(self, what: str, netfn: int, command: int, data: bytes) -> bytes:
        until_s = min(self._until_s, time.monotonic() + ANSWER_LIMIT_S)
        return self._bmc.ask(what, netfn, command, data, until_s=until_s)
