"""Measures a run each few seconds, takes its beats, and gives both to the hang watch.

Of the chips only the daemon knows: it is asked with each sample, and a sample for which no answer comes is
made without. What was measured is kept in two files of an hour each. It decides nothing.
"""

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Final

from nodeagent.job.hang.settings import Settings
from nodeagent.job.hang.watch import HangWatch
from nodeagent.job.lines import Chip, Chips
from nodeagent.job.model import SECOND_NS, Hung, Process
from nodeagent.job.sample import Beat, ChipSample, Sample
from nodeagent.job.shell.sampler import Sampler

ANSWER_WITHIN_NS: Final = 2 * SECOND_NS
"""A daemon that does not say in time how the chips are leaves them unknown for this sample."""
