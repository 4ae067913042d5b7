"""A target of shared storage is lost and comes back, and the kernel's log says so: by the real /dev/kmsg."""

from uuid import uuid4

from tests.harness.configuration import ROOT
from tests.harness.daemon import Daemon
from tests.harness.kernel_log import RealKernelLog
from tests.stories.conftest import Follow, Launch

TABLE = "shared_storage.toml"
NORESP = "LUSTRE_NORESP"


async def test_a_target_that_is_lost_is_a_fault_until_its_connection_is_restored(
    launch: Launch, follow: Follow, real_log: RealKernelLog
) -> None:
    daemon = launch(real_log)
    (daemon.tables / TABLE).write_bytes((ROOT / "fault_codes" / TABLE).read_bytes())
    subscriber = await follow(daemon)
    file_system = uuid4().hex[:8]
    target, other = f"{file_system}-OST0003", f"{file_system}-OST0004"

    real_log.append(lost(target))
    raised = await subscriber.raised(NORESP, f"lustre:{target}")
    real_log.append(evicted(other))
    await subscriber.raised(NORESP, f"lustre:{other}")
    real_log.append(restored(target))
    await subscriber.cleared(NORESP, f"lustre:{target}")

    assert (raised.condition_level, raised.evidence["target"]) == ("SubHealthFault", target)
    assert await open_devices(daemon, file_system) == [f"lustre:{other}"]
    assert (await daemon.status())["node"]["subhealthy"]
    real_log.append(restored(other))
    await subscriber.cleared(NORESP, f"lustre:{other}")
    assert await open_devices(daemon, file_system) == []


def lost(target: str) -> str:
    return (
        f"Lustre: {target}-osc-ffff8d1c2a3b4000: Connection to {target} (at 10.1.1.9@o2ib) was lost; in"
        " progress operations using this service will wait for recovery to complete"
    )


def evicted(target: str) -> str:
    return (
        f"LustreError: 167-0: {target}-osc-ffff8d1c2a3b4000: This client was evicted by {target}; in progress"
        " operations using this service will fail."
    )


def restored(target: str) -> str:
    return f"Lustre: {target}-osc-ffff8d1c2a3b4000: Connection restored to 10.1.1.9@o2ib (at 10.1.1.9@o2ib)"


async def open_devices(daemon: Daemon, file_system: str) -> list[str]:
    """Of this test's file system: the log may hold lines of others."""
    conditions = (await daemon.status())["conditions"]
    return sorted(each["device"] for each in conditions if file_system in each["device"])
