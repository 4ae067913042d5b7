"""Which folders of tables a command reads when no daemon names them. It reads none of them."""

from pathlib import Path
from typing import Final

import nodeagent
from nodeagent.config.config import Config
from nodeagent.config.sections import AgentConfig

INSTALLED: Final = Path(AgentConfig().tables[0])
CHECKOUT: Final = Path(nodeagent.__file__).parents[1] / "fault_codes"
"""Beside the package in a source checkout."""


def configured(config: Config) -> tuple[Path, ...]:
    """As configured; in a source checkout its tables stand for shipped ones that are not installed."""
    return tuple(_or_checkout(Path(folder)) for folder in config.agent.tables)


def shipped(config: Config) -> Path:
    """The first configured folder: what the site's own tables lie over."""
    return configured(config)[0]


def _or_checkout(folder: Path) -> Path:
    return CHECKOUT if folder == INSTALLED and not folder.exists() and CHECKOUT.exists() else folder
