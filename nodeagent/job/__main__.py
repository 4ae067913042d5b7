"""``python -m nodeagent.job run -- COMMAND``, and the same of the one file ``nodeagent-job.pyz``."""

import sys

from nodeagent.job.main import main

sys.exit(main(sys.argv[1:]))
