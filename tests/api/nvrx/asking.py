"""Asks with NVRx' own code: ``asking.py SOCKET`` prints True or False, and its log on standard error.

It runs by itself, with the folder of NVRx on its path: nothing of this project is imported.
"""

import logging
import sys

from nvidia_resiliency_ext.shared_utils.health_check import NodeHealthCheck  # type: ignore[import-not-found]

logging.basicConfig(level=logging.DEBUG)
print(NodeHealthCheck(endpoint=sys.argv[1])())
