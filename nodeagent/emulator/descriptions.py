"""A node in words, such as ``8x910B+8xH100``, made into a state file. Products: rows of ``products.toml``."""

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from nodeagent.emulator.ascend.chips import fill_npus
from nodeagent.emulator.bmc.controller import HUAWEI, SUPERMICRO, Controller
from nodeagent.emulator.nvidia.chips import fill_gpus
from nodeagent.emulator.shared.layout import LIMITS
from nodeagent.emulator.shared.state import State

PRODUCTS: Final[Mapping[str, Mapping[str, Any]]] = tomllib.loads(
    (Path(__file__).parent / "products.toml").read_text()
)
"""Product -> its row."""
FILLERS: Final[Mapping[str, Callable[[State, int, int, Mapping[str, Any]], None]]] = {
    "npu": fill_npus,
    "gpu": fill_gpus,
}
"""``kind`` of a product -> what describes its chips in a state file."""

_PART: Final = re.compile(r"(\d+)x(\w+)", re.ASCII)


class DescriptionError(ValueError):
    """No such node can be described; the text says what is wrong with which words."""


def parse_description(text: str) -> list[tuple[int, str]]:
    """``8x910B+8xH100`` -> ``[(8, "910B"), (8, "H100")]``. Raises ``DescriptionError``."""
    parts: list[tuple[int, str]] = []
    for words in text.split("+"):
        part = _PART.fullmatch(words.strip())
        if part is None or part[2] not in PRODUCTS or int(part[1]) == 0:
            raise DescriptionError(
                f"{words!r}: such as 8x910B is right, a count and a product out of {', '.join(PRODUCTS)}"
            )
        parts.append((int(part[1]), part[2]))
    kinds = [PRODUCTS[product]["kind"] for _, product in parts]
    if len(set(kinds)) < len(kinds):
        raise DescriptionError(f"{text!r}: one product of NPUs and one of GPUs at most")
    if sum(count for count, _ in parts) > LIMITS["CHIPS"]:
        raise DescriptionError(f"{text!r}: {LIMITS['CHIPS']} chips at most")
    return parts


def libraries_for(text: str) -> list[str]:
    """The libraries that a described node has. Raises ``DescriptionError``."""
    of_chips = [name for _, product in parse_description(text) for name in PRODUCTS[product]["libraries"]]
    return [*of_chips, "libbmc.so"]


def describe(state: State, text: str) -> None:
    """Fills a new state file. Raises ``DescriptionError``."""
    first = 0
    for count, product in parse_description(text):
        row = PRODUCTS[product]
        try:
            FILLERS[row["kind"]](state, first, count, row)
        except ValueError as error:
            raise DescriptionError(f"{count}x{product}: {error}") from None
        first += count
    state.node.chip_count = first
    has_npus = any(state.chips[index].kind == LIMITS["KIND_NPU"] for index in range(first))
    Controller(state).describe(HUAWEI if has_npus else SUPERMICRO)
