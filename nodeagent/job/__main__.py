"""``python -m nodeagent.job run -- COMMAND``, and the same of the one file ``nodeagent-job.pyz``."""

import sys

from nodeagent.job.main import end_with

end_with(sys.argv[1:])
