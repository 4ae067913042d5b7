"""The store is damaged between two lives: the daemon starts, and no chip out of service looks well."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nodeagent.store.layout import SCHEMA_VERSION
from tests.store.samples import make_the_catalogs_texts
from tests.stories.conftest import LaunchGpus
from tests.stories.gpus import GpuDaemon

FLIPS = 12
OUT = {"gpu0", "gpu1"}


async def with_two_gpus_out(daemon: GpuDaemon) -> None:
    """gpu0 by a person, gpu1 by a fault that only a person or a reboot ends; then the daemon is killed."""
    await daemon.start()
    assert (await order(daemon, "isolate", "gpu0", "--reason", "RMA"))[0] == 0
    daemon.gpus.raise_xid("gpu1", 79)
    await daemon.comes(lambda: is_out(daemon, OUT), "both GPUs out of service")
    await daemon.kill()


async def order(daemon: GpuDaemon, *words: str) -> tuple[int, str]:
    return await daemon.command(*words, "--socket", daemon.folder / "c.sock")


async def is_out(daemon: GpuDaemon, wanted: set[str]) -> bool:
    return out_of_service(await daemon.status()) == wanted


def out_of_service(status: dict[str, Any]) -> set[str]:
    return {each["name"] for each in status["devices"] if each["verdict"] == "ISOLATE"}


def damages(status: dict[str, Any]) -> list[str]:
    return [each["code"] for each in status["conditions"] if each["code"].startswith("store_damaged")]


def store(daemon: GpuDaemon) -> Path:
    return daemon.state / "store.db"


def flip(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 0xFF
    file.write_bytes(content)


@pytest.mark.timeout(900)  # a dozen starts, one after another
async def test_whatever_byte_of_it_is_wrong_the_daemon_starts_and_isolations_stand(
    launch_gpus: LaunchGpus,
) -> None:
    daemon = launch_gpus("2xH100")
    await with_two_gpus_out(daemon)
    before = {each: each.read_bytes() for each in daemon.state.glob("store.db*")}
    for seed in range(FLIPS):
        for each in daemon.state.glob("store.db*"):
            each.unlink()
        for each, content in before.items():
            each.write_bytes(content)
        files = [each for each in before if each.name.endswith((".db", "-wal"))]
        file = files[seed % len(files)]
        flip(file, random.Random(seed).randrange(len(before[file])))
        await daemon.start()
        status = await daemon.status()
        named = any(each["code"] == "store_damaged.incomplete" for each in status["conditions"])
        assert out_of_service(status) == OUT or named, (seed, file, status["conditions"])
        assert status["durable"]
        await daemon.kill()


@pytest.mark.parametrize("how", ["empty", "a folder"])
async def test_a_store_that_is_gone_keeps_new_jobs_off_the_node_until_a_person_has_seen_it(
    launch_gpus: LaunchGpus, how: str
) -> None:
    daemon = launch_gpus("2xH100")
    await with_two_gpus_out(daemon)
    (daemon.state / "store.db-wal").unlink()
    store(daemon).write_bytes(b"")
    if how == "a folder":
        store(daemon).unlink()
        store(daemon).mkdir()

    await daemon.start()
    status = await daemon.status()
    assert (status["node"]["verdict"], damages(status)) == ("NO_NEW_JOBS", ["store_damaged.incomplete"])
    (condition,) = [each for each in status["conditions"] if each["code"] == "store_damaged.incomplete"]
    assert condition["evidence"]["lost"] == "everything"
    assert (daemon.state / condition["evidence"]["kept_as"]).exists()

    await daemon.restart()
    assert damages(await daemon.status()) == ["store_damaged.incomplete"]
    assert (await order(daemon, "release", "node", "--reason", "compared with the rack's list"))[0] == 0
    status = await daemon.status()
    assert (status["node"]["verdict"], damages(status)) == ("ALLOW", [])


async def test_lost_tables_beside_refused_ones_leave_the_shipped_ones_to_judge_by(
    launch_gpus: LaunchGpus,
) -> None:
    daemon = launch_gpus("2xH100")
    await with_two_gpus_out(daemon)
    make_the_catalogs_texts(daemon.state)
    (daemon.tables / "site.toml").write_text("this is no table")

    await daemon.start()
    assert out_of_service(await daemon.status()) == OUT


async def test_a_store_of_a_later_version_is_left_as_it_is_and_the_node_is_watched(
    launch_gpus: LaunchGpus,
) -> None:
    daemon = launch_gpus("2xH100")
    await with_two_gpus_out(daemon)
    with closing(sqlite3.connect(store(daemon))) as later:
        later.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
        later.execute("UPDATE state SET checksum = checksum + 1")
        later.commit()
    before = store(daemon).read_bytes()

    await daemon.start()
    status = await daemon.status()
    assert not status["durable"]
    assert out_of_service(status) == OUT
    assert (status["node"]["verdict"], damages(status)) == ("NO_NEW_JOBS", ["store_damaged.incomplete"])
    assert await daemon.stop() == 0
    assert store(daemon).read_bytes() == before


async def test_a_store_that_is_removed_while_the_daemon_runs_is_made_anew_at_the_next_event(
    launch_gpus: LaunchGpus,
) -> None:
    daemon = launch_gpus("2xH100")
    await daemon.start()
    assert (await order(daemon, "isolate", "gpu0", "--reason", "RMA"))[0] == 0
    for each in daemon.state.glob("store.db*"):
        each.unlink()
    daemon.gpus.raise_xid("gpu1", 79)
    await daemon.comes(lambda: is_out(daemon, OUT), "both GPUs out of service")
    await daemon.comes(lambda: is_durable(daemon), "a store")
    await daemon.kill()
    await daemon.start()
    assert out_of_service(await daemon.status()) == OUT


async def is_durable(daemon: GpuDaemon) -> bool:
    return bool((await daemon.status())["durable"]) and store(daemon).exists()
