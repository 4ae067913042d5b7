"""The return codes of NVML, read from the exceptions of pynvml."""

from collections.abc import Callable

import pynvml


def code_of(call: Callable[..., object], *arguments: object) -> int:
    """The return code that a call of pynvml raises; 0 for none."""
    try:
        call(*arguments)
    except pynvml.NVMLError as error:
        return int(error.value)
    return 0
