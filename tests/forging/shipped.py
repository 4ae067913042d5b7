"""The shipped patterns, as languages, and lines of every fault they know."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.forging.automata import Language, anything, common_line, of_regex
from tests.shipped import shipped_catalog

REPOSITORY = Path(__file__).parents[2]
SAMPLES: Final[dict[str, Any]] = tomllib.loads(
    (REPOSITORY / "tests/fixtures/kernel_samples.toml").read_text()
)

SOURCES: Final[dict[str, Any]] = tomllib.loads(
    (REPOSITORY / "tests/fixtures/kernel_sources.toml").read_text()
)
ASCEND: Final[dict[str, Any]] = tomllib.loads((REPOSITORY / "tests/fixtures/ascend_driver.toml").read_text())


@cache
def languages() -> dict[str, Language]:
    return {pattern.id: of_regex(pattern.regex) for pattern in shipped_catalog().patterns}


@cache
def fragment_takers() -> frozenset[str]:
    """The patterns of the driver that marks all of its lines as continuations."""
    return frozenset(pattern.id for pattern in shipped_catalog().patterns if pattern.continuation)


def samples() -> list[str]:
    known = [text for sort in ("of_the_field", "of_the_formats") for text, *_ in SAMPLES[sort]]
    known += [line["text"] for line in SOURCES["line"]]
    return known + [text for text, *_ in ASCEND["printed"] + ASCEND["older"]]


@cache
def shortest() -> tuple[str, ...]:
    """The shortest line that each pattern takes."""
    return tuple(common_line(anything(), language) or "" for language in languages().values())


@cache
def faults() -> tuple[str, ...]:
    """Every sample of a fault, and the shortest line that each pattern takes."""
    return tuple(dict.fromkeys((*samples(), *shortest())))
