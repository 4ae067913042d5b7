"""The shipped tables, read once in each process of the suite: to read and judge them all takes a while."""

from functools import cache
from pathlib import Path

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import Settings
from nodeagent.tables.load import load_catalog

OF_GPUS = ("memory", "nvidia", "nvlink", "nvml", "nvswitch", "xid")
"""The tables that a node with GPUs needs, for tests that load no others."""

FAULT_CODES = Path(__file__).parents[1] / "fault_codes"


@cache
def shipped_catalog() -> Catalog:
    """A value that nobody can change, under the settings of a node without a configuration."""
    return load_catalog([FAULT_CODES], Settings()).catalog
