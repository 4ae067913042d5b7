"""What a call can end with. Only what trying again cannot mend reaches the caller of ``watch``."""


class ClientError(Exception):
    """The daemon refused, or does not answer. ``status`` is the gRPC status's name, ``reason`` the words."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.reason = reason
