"""What a call can end with. Only what trying again cannot mend reaches the caller of ``watch``."""


class ClientError(Exception):
    """The daemon refused, or does not answer. ``status`` is the gRPC status's name, ``reason`` the words.

    ``retry_after_s`` is when to try again, where the daemon says so.
    """

    def __init__(self, status: str, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s
