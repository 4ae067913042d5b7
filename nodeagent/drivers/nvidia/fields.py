"""NVML's field values: many numbers of a GPU by one call, each with an answer of its own.

The call succeeds though single fields fail. What a GPU does not have is asked no more.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Final

import pynvml

from nodeagent.drivers.nvidia.calls import UNSUPPORTED, Calls

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
_NOT_OF_THIS_GPU: Final = UNSUPPORTED | {pynvml.NVML_ERROR_INVALID_ARGUMENT}


class Fields:
    """A list of fields of one GPU, read together."""

    def __init__(self, calls: Calls, wanted: Iterable[Field]) -> None:
        self._calls = calls
        self._wanted = list(wanted)

    def lacks(self, field: Field) -> bool:
        """Whether the GPU has said that it does not have it."""
        return field not in self._wanted

    def read(self) -> Mapping[Field, float]:
        """What answered, by field; nothing where the call fails. Raises as ``Calls.ask``."""
        if not self._wanted:
            return {}
        answered = self._calls.ask(pynvml.nvmlDeviceGetFieldValues, self._wanted)
        if answered is None:
            return {}
        values: dict[Field, float] = {}
        for asked, entry in zip(list(self._wanted), _ENTRY.iter_unpack(bytes(answered)), strict=True):
            value_type, number, raw = entry[4:]
            shape = _VALUES.get(value_type)
            if number in _NOT_OF_THIS_GPU:
                self._wanted.remove(asked)
            elif number != pynvml.NVML_SUCCESS:
                self._calls.fail(f"field {asked[0]}", number, ("field", *asked))
            elif shape is None:
                self._calls.refused += 1
            else:
                values[asked] = float(shape.unpack(raw[: shape.size])[0])
        return values
