"""What a watch finds in a recorded series, and at which second. It measures nothing itself."""

from collections.abc import Iterable
from dataclasses import dataclass

from nodeagent.job.hang.settings import Settings
from nodeagent.job.hang.watch import HangWatch
from nodeagent.job.inputs import Hung
from nodeagent.job.series import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    t_s: float
    hung: Hung


def replay(rows: Iterable[Row], settings: Settings) -> tuple[Finding, ...]:
    """The run begins with the first row. A row's beats came before its sample."""
    watch = HangWatch(settings)
    found = list[Finding]()
    for row in rows:
        for beat in row.beats:
            found += [Finding(t_s=beat.t_s, hung=each) for each in watch.beaten(beat)]
        found += [Finding(t_s=row.sample.t_s, hung=each) for each in watch.sampled(row.sample)]
    return tuple(found)
