"""A chip that neither the driver nor PCI lists: only the configuration knows that there is one more."""

import json

from nodeagent.client import Verdict
from tests.stories.conftest import Follow, LaunchGpus

FEWER = "fewer_chips_than_expected.nvidia"

IMPATIENT = """
[[duration]]
id = "fewer-chips-than-expected"
codes = ["fewer_chips_than_expected.nvidia"]
fault_timeout = "1s"
recover_timeout = "0s"
level = "PreSeparateFault"
"""


async def test_the_node_takes_no_new_jobs_until_the_chips_are_as_many_as_a_reload_says(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("7xH100", nvidia=("expected_chips = 8",))
    daemon.tables.mkdir()
    (daemon.tables / "impatient.toml").write_text(IMPATIENT)
    subscriber = await follow(daemon)

    async def takes_no_jobs() -> bool:
        return bool((await daemon.status())["node"]["verdict"] == "NO_NEW_JOBS")

    await daemon.comes(takes_no_jobs, "the node takes no new jobs")
    (standing,) = [each for each in (await daemon.status())["conditions"] if each["code"] == FEWER]
    assert standing["level"] == "PreSeparateFault"
    assert standing["evidence"] == {"reason": "7 listed, drivers.nvidia.expected_chips is 8"}

    daemon.nvidia = ("expected_chips = 7",)
    daemon.configure()
    status, out = await daemon.command("tables", "reload", "--socket", daemon.folder / "c.sock")
    cleared = await subscriber.cleared(FEWER, "node")
    assert (status, json.loads(out)["warnings"], cleared.verdict) == (0, [], Verdict.ALLOW)
