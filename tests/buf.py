"""Where ``./dev`` has installed buf, which judges the definitions and asks the API."""

import sys
from pathlib import Path
from typing import Final

BUF: Final = Path(sys.prefix, "buf", "bin", "buf")
