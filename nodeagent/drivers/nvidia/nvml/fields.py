"""NVML's field values: many numbers of a GPU by one call, each with its own status.

The call succeeds even if single fields fail. It may fail as a whole if no field was populated
(nvmlDeviceGetFieldValues in nvml.h): this means only that each field was refused. An entry is sent with a
failure in it, so an entry that the library leaves unchanged is no value. ``Cached`` keeps an answer that is
read seldom.
"""

import ctypes
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import pynvml

from nodeagent.drivers.nvidia.nvml.baseline import FIELD, Question
from nodeagent.drivers.nvidia.nvml.calls import NOT_OF_THIS_GPU, Calls

Field = tuple[int, int]
"""Field id and scope, which is the number of a link or 0."""

_ENTRY: Final = struct.Struct("=IIqqII8s")
_VALUES: Final[Mapping[int, struct.Struct]] = {
    pynvml.NVML_VALUE_TYPE_DOUBLE: struct.Struct("=d"),
    pynvml.NVML_VALUE_TYPE_UNSIGNED_INT: struct.Struct("=I"),
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG: struct.Struct("=Q"),
    pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: struct.Struct("=Q"),
    pynvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: struct.Struct("=q"),
    pynvml.NVML_VALUE_TYPE_SIGNED_INT: struct.Struct("=i"),
    pynvml.NVML_VALUE_TYPE_UNSIGNED_SHORT: struct.Struct("=H"),
}
MAX_AT_ONCE: Final = 128
"""A call asks for no more, however many links there are."""

MAX_KEPT: Final = 8
"""Requests that are kept, because the fields hardly ever change."""


class FieldValues:
    """A list of fields of one GPU, read together."""

    def __init__(self, calls: Calls, wanted: Iterable[Field]) -> None:
        self._calls = calls
        self._wanted = [(field, _question(field)) for field in wanted]
        self._requests: dict[tuple[Field, ...], bytes] = {}

    def lacks(self, field: Field) -> bool:
        """Whether it was refused when it was asked for last."""
        return self._calls.is_refused(_question(field))

    def has_lost(self, field: Field) -> bool:
        """Whether it was refused though it was answered before."""
        return self._calls.has_lost(_question(field))

    def read(self) -> Mapping[Field, float]:
        """What answered, by field; nothing where the call fails. Raises as ``Calls.ask``."""
        values: dict[Field, float] = {}
        due = [field for field, question in self._wanted if self._calls.is_due(question)]
        for at in range(0, len(due), MAX_AT_ONCE):
            self._read(tuple(due[at : at + MAX_AT_ONCE]), values)
        return values

    def _read(self, wanted: tuple[Field, ...], values: dict[Field, float]) -> None:
        if wanted not in self._requests:
            if len(self._requests) > MAX_KEPT:
                self._requests.clear()
            self._requests[wanted] = _request(wanted)
        calls = self._calls
        answered, number = calls.ask_for_fields(nvmlDeviceGetFieldValues, self._requests[wanted])
        if number in NOT_OF_THIS_GPU:
            for field in wanted:
                calls.take_refusal(_question(field), number)
        if answered is None:
            return
        for field, entry in zip(wanted, _ENTRY.iter_unpack(answered), strict=True):
            value_type, number, raw = entry[4:]
            shape = _VALUES.get(value_type)
            if number in NOT_OF_THIS_GPU:
                calls.take_refusal(_question(field), number)
            elif number != pynvml.NVML_SUCCESS:
                calls.take_failure(_question(field), number, f"field {field[0]}")
            elif shape is None:
                calls.refused += 1
            else:
                calls.take_answer(_question(field))
                values[field] = float(shape.unpack(raw[: shape.size])[0])


def _question(field: Field) -> Question:
    return (FIELD, *field)


def _request(wanted: Sequence[Field]) -> bytes:
    failed = pynvml.NVML_ERROR_UNKNOWN
    return b"".join([_ENTRY.pack(number, scope, 0, 0, 0, failed, b"") for number, scope in wanted])


def nvmlDeviceGetFieldValues(handle: Any, request: bytes) -> bytes:  # noqa: N802  the call's own name
    """As pynvml's, which takes longer to fill in what is asked for than the library does to answer."""
    entries = ctypes.create_string_buffer(request, len(request))
    try:
        call = pynvml.nvmlLib.nvmlDeviceGetFieldValues
    except AttributeError:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND) from None
    if status := call(handle, ctypes.c_int(len(request) // _ENTRY.size), entries):
        raise pynvml.NVMLError(status)
    return entries.raw


T = TypeVar("T")


class Cached(Generic[T]):
    """``ask`` gives None where there is no answer. ``now_s`` is a clock that does not step."""

    def __init__(
        self, ask: Callable[[], T | None], every_s: float, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask
        self._every_s = every_s
        self._now_s = now_s
        self._due_s = 0.0
        self._answer: T | None = None

    def get(self) -> T | None:
        """The last answer, None if there never was one. What was not answered is asked again at once."""
        if self._now_s() >= self._due_s and (answer := self._ask()) is not None:
            self._answer, self._due_s = answer, self._now_s() + self._every_s
        return self._answer
