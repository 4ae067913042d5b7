"""A driver that the configuration switches off: its last words do not hang over the node for ever."""

from pathlib import Path

from nodeagent.config.load import load_config
from nodeagent.core.model import Loss, SourceLost, Started, Verdict
from nodeagent.daemon.sources import configured
from tests.core.build import begin, catalog, device_view, lost, ns, run


def test_a_source_that_was_lost_before_its_driver_was_switched_off_no_longer_counts(tmp_path: Path) -> None:
    file = tmp_path / "nodeagent.toml"
    file.write_text("[drivers.ascend]\nenabled = false\n\n[drivers.nvidia]\nenabled = false\n")
    engine = begin(catalog())
    run(engine, [(1, lost(required=True))])
    assert device_view(engine, "node").verdict is Verdict.UNKNOWN

    off = configured.switched_off(load_config(file, {}), engine.view())
    assert off == (SourceLost(source="ascend", reason="drivers.ascend.enabled is false", how=Loss.RELEASED),)
    engine.step(ns(2), Started(boot_id="boot-1", version="2"))
    engine.step(ns(2), off[0])

    assert device_view(engine, "node").verdict is Verdict.ALLOW
    (reason,) = device_view(engine, "npu0").reasons
    assert reason.text == "ascend: drivers.ascend.enabled is false"
