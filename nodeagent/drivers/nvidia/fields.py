"""NVML's field values: many numbers of a GPU by one call, each with an answer of its own.

The call succeeds though single fields fail. What a GPU does not have is asked no more.
"""

import ctypes
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pynvml

from nodeagent.drivers.nvidia.calls import NOT_OF_THIS_GPU, Calls

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


class Fields:
    """A list of fields of one GPU, read together."""

    def __init__(self, calls: Calls, wanted: Iterable[Field]) -> None:
        self._calls = calls
        self._wanted = list(wanted)
        self._requests: list[tuple[Sequence[Field], bytes]] = []

    def lacks(self, field: Field) -> bool:
        """Whether the GPU has said that it does not have it."""
        return field not in self._wanted

    def read(self) -> Mapping[Field, float]:
        """What answered, by field; nothing where the call fails. Raises as ``Calls.ask``."""
        values: dict[Field, float] = {}
        if not self._requests:
            parts = [self._wanted[at : at + MAX_AT_ONCE] for at in range(0, len(self._wanted), MAX_AT_ONCE)]
            self._requests = [(part, _request(part)) for part in parts]
        for wanted, request in list(self._requests):
            self._read(wanted, request, values)
        return values

    def _read(self, wanted: Sequence[Field], request: bytes, values: dict[Field, float]) -> None:
        answered = self._calls.ask(nvmlDeviceGetFieldValues, request)
        if answered is None:
            return
        for asked, entry in zip(wanted, _ENTRY.iter_unpack(answered), strict=True):
            value_type, number, raw = entry[4:]
            shape = _VALUES.get(value_type)
            if number in NOT_OF_THIS_GPU:
                self._wanted.remove(asked)
                self._requests = []
            elif number != pynvml.NVML_SUCCESS:
                self._calls.fail(f"field {asked[0]}", number, ("field", *asked))
            elif shape is None:
                self._calls.refused += 1
            else:
                values[asked] = float(shape.unpack(raw[: shape.size])[0])


def _request(wanted: Sequence[Field]) -> bytes:
    return b"".join([_ENTRY.pack(number, scope, 0, 0, 0, 0, b"") for number, scope in wanted])


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
