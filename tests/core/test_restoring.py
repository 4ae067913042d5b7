"""What the history says is open, put back as it was."""

from typing import Any

import pytest

from nodeagent.core.restoring import History
from tests.core.build import begin, catalog, order, run


@pytest.mark.parametrize("what", ["isolate", "quiesce"])
@pytest.mark.parametrize(
    "words",
    [
        {"who": "uid:0", "owner": "alice", "reason": "fan swap: at noon (today)"},
        {"who": "uid:0", "reason": "fan swap"},
        {"who": "cert:slurm (east)", "owner": "alice", "reason": "drained"},
    ],
)
def test_a_hold_is_its_owners_again(what: str, words: dict[str, Any]) -> None:
    engine = begin(catalog())
    history = History(())
    history.add(run(engine, [(1, order(what, device="node" if what == "quiesce" else "npu0", **words))]))
    (held,) = engine.view().holds
    (restored,) = history.missing(())
    assert restored == held
