"""The shipped tables, read once in each run of the suite: to read and judge them all takes a while."""

import os
from functools import cache
from pathlib import Path
from unittest.mock import patch

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import Settings
from nodeagent.tables.cached import load_cached

CACHE = "TESTS_CACHE_OF_SHIPPED"
"""The variable that names the cache of the run (``tests.computed_once``)."""

OF_GPUS = ("memory", "nvidia", "nvlink", "nvml", "nvswitch", "xid")
"""The tables that a node with GPUs needs, for tests that load no others."""

FAULT_CODES = Path(__file__).parents[1] / "fault_codes"


@cache
def shipped_catalog() -> Catalog:
    """A value that nobody can change, under the settings of a node without a configuration."""
    with patch.dict(os.environ, CACHE_DIRECTORY=os.environ.get(CACHE, "")):
        return load_cached([FAULT_CODES], Settings()).catalog
