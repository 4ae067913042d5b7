"""What the vendor's libraries answer instead of 0: every code with its name and what it means.

A failure carries the function and the code as the library gave it; what follows from it is for the
caller to decide, save the two answers that have a class of their own because everybody treats them alike.
"""

from collections.abc import Mapping
from typing import Final

from nodeagent.drivers.api import CallFailed

SYMBOL_MISSING: Final = -99998
"""The vendor's tools give this number to a function that the library does not have."""

INVALID_DEVICE: Final = -8007
NOT_READY: Final = -8012
NOT_SUPPORTED: Final = -8255

DCMI_STATUS: Final[Mapping[int, tuple[str, str]]] = {
    -8001: ("INVALID_PARAMETER", "invalid parameter"),
    -8002: ("OPER_NOT_PERMITTED", "operation not permitted"),
    -8003: ("MEM_OPERATE_FAIL", "memory operation failed"),
    -8004: ("SECURE_FUN_FAIL", "secure function failed"),
    -8005: ("INNER_ERR", "inner error"),
    -8006: ("TIME_OUT", "timeout"),
    -8007: ("INVALID_DEVICE_ID", "invalid device id"),
    -8008: ("DEVICE_NOT_EXIST", "device does not exist"),
    -8009: ("IOCTL_FAIL", "ioctl failed"),
    -8010: ("SEND_MSG_FAIL", "sending a message to the device failed"),
    -8011: ("RECV_MSG_FAIL", "no message came back from the device"),
    -8012: ("NOT_READY", "device not ready"),
    -8013: ("NOT_SUPPORT_IN_CONTAINER", "not supported in a container"),
    -8014: ("FILE_OPERATE_FAIL", "file operation failed"),
    -8015: ("RESET_FAIL", "reset failed"),
    -8016: ("ABORT_OPERATE", "operation aborted"),
    -8017: ("IS_UPGRADING", "upgrade in progress"),
    -8020: ("RESOURCE_OCCUPIED", "resource occupied"),
    -8022: ("PARTITION_NOT_RIGHT", "conflict with the partition into virtual NPUs"),
    -8023: ("CONFIG_INFO_NOT_EXIST", "configuration not found"),
    -8255: ("NOT_SUPPORT", "not supported"),
    SYMBOL_MISSING: ("SYMBOL_MISSING", "the library has no such function"),
}

SWITCH_STATUS: Final[Mapping[int, tuple[str, str]]] = {
    -8001: ("PARAMETER", "invalid parameter"),
    -8002: ("LOG", "its log cannot be opened"),
    -8003: ("MEMORY", "out of memory"),
    -8004: ("DEVICE_OPEN", "its device cannot be opened"),
    -8005: ("IOCTL", "ioctl failed"),
    -8006: ("LOCK", "a lock cannot be taken"),
    -8007: ("THREAD", "a thread cannot be started"),
    -8008: ("VERSION", "library and kernel driver have different versions"),
    -8009: ("NOT_INITIALISED", "not initialised"),
    -8010: ("PROCESSES", "too many processes use it"),
    -8011: ("MMAP", "mmap failed"),
    -8012: ("MEMSET", "memset failed"),
    -8013: ("MEMCPY", "memcpy failed"),
    -8014: ("SUBSCRIPTIONS", "too many subscriptions"),
    -8015: ("FILTER", "invalid filter"),
    -8016: ("UNSUBSCRIBE", "unsubscribing failed"),
    -8017: ("INITIALISED_TWICE", "initialised twice"),
    SYMBOL_MISSING: ("SYMBOL_MISSING", "the library has no such function"),
}


class VendorCallFailed(CallFailed):
    """``status`` is as the library gave it; ``errno`` its absolute value: the wire has no negative ones."""

    def __init__(self, function: str, status: int, meanings: Mapping[int, tuple[str, str]]) -> None:
        name, meaning = meanings.get(status, ("UNKNOWN", "a code that the vendor does not document"))
        super().__init__(f"{function}: {meaning} ({name}, {status})", errno=abs(status))
        self.function = function
        self.status = status


class NotSupported(VendorCallFailed):
    """This chip, or this version of the library, cannot answer that: asking again is of no use."""


class NotReady(VendorCallFailed):
    """The chip is not there for now: dropped from the bus, or starting after a reset."""


class Nonsense(CallFailed):
    """The library answered with what cannot be, such as a negative count."""


def failure(function: str, status: int) -> VendorCallFailed:
    """The failure of a function of libdcmi."""
    if status in (NOT_SUPPORTED, SYMBOL_MISSING):
        return NotSupported(function, status, DCMI_STATUS)
    if status == NOT_READY:
        return NotReady(function, status, DCMI_STATUS)
    return VendorCallFailed(function, status, DCMI_STATUS)


def switch_failure(function: str, status: int) -> VendorCallFailed:
    """The failure of a function of liblingqu-dcmi, whose numbers mean other things."""
    return VendorCallFailed(function, status, SWITCH_STATUS)


def check_count(what: str, count: int, limit: int) -> None:
    if not 0 <= count <= limit:
        raise Nonsense(f"{what} is given as {count}; it must be 0 to {limit}")
