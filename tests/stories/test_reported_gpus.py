"""What tests of a site report of single GPUs: a real daemon over emulated ones, the documented commands."""

import asyncio
import os
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodeagent.client import AsyncClient, EventKind, Level, Verdict
from nodeagent.messages.pb import fault_service_pb2, types_pb2
from tests.documents import ROOT, blocks, called
from tests.drivers.host.node_tree import NodeTree
from tests.drivers.link.namespace import namespace
from tests.drivers.link.tree import Tree
from tests.harness.daemon import COMMAND
from tests.stories.conftest import Follow, LaunchGpus
from tests.stories.gpus import GpuDaemon

DOCUMENT = ROOT / "docs" / "public-faults.md"
EXAMPLES = ROOT / "packaging" / "examples" / "reports"
TABLE = EXAMPLES / "site-tests.toml"
CODE = "SITE_NCCL_TEST"

FAKE_SMI = """#!/bin/sh
[ "$*" = "--query-gpu=uuid --format=csv,noheader" ] && printf '%s\\n' {uuids}
"""
FAKE_TEST = """#!/bin/sh
echo "$CUDA_VISIBLE_DEVICES" >>{folder}/tested
! grep -qx "$CUDA_VISIBLE_DEVICES" {folder}/broken
"""


@pytest.fixture
def daemon(launch_gpus: LaunchGpus) -> GpuDaemon:
    daemon = launch_gpus("8xH100")
    daemon.configure()
    (daemon.tables / TABLE.name).write_bytes(TABLE.read_bytes())
    return daemon


async def nodeagent(daemon: GpuDaemon, *words: str) -> tuple[int, str, str]:
    """(exit status, stdout, stderr), as an operator."""
    return await ran(daemon, *COMMAND, *words)


async def ran(daemon: GpuDaemon, *command: str | Path, path: str = "") -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env={**os.environ, "NODEAGENT_CONFIG": str(daemon.config), **({"PATH": path} if path else {})},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def verdicts(daemon: GpuDaemon) -> dict[str, str]:
    """Of what is not ALLOW."""
    status = await daemon.status()
    return {each["name"]: each["verdict"] for each in status["devices"] if each["verdict"] != "ALLOW"}


async def listed(daemon: GpuDaemon) -> Sequence[types_pb2.Device]:
    async with AsyncClient(daemon.socket) as client:
        answer: fault_service_pb2.ListDevicesResponse = await client.call(
            fault_service_pb2.ListDevicesRequest()
        )
        return answer.devices


async def ids(daemon: GpuDaemon) -> dict[str, str]:
    return {each.name: each.id for each in await listed(daemon)}


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


async def test_a_test_of_the_site_takes_out_one_gpu_and_gives_it_back(
    daemon: GpuDaemon, follow: Follow, tmp_path: Path
) -> None:
    """By the script of the package, with a test that fails on gpu3 until it is mended."""
    subscriber = await follow(daemon)
    known = await ids(daemon)
    uuids = [known[f"gpu{number}"] for number in range(8)]
    folder = tmp_path / "bin"
    folder.mkdir()
    program(folder, "nvidia-smi", FAKE_SMI.format(uuids=" ".join(uuids)))
    program(folder, "all_reduce_perf", FAKE_TEST.format(folder=folder))
    program(folder, "nodeagent", f'#!/bin/sh\nexec {shlex.join(map(str, COMMAND))} "$@"\n')
    (folder / "broken").write_text(f"{known['gpu3']}\n")
    environment = f"{folder}:{os.environ['PATH']}"
    script = ("env", "NODEAGENT=nodeagent", EXAMPLES / "test-gpus", "all_reduce_perf", "-g", "1")

    failed = await ran(daemon, *script, path=environment)
    raised = await subscriber.raised(CODE, "gpu3")
    assert failed[0] == 1, failed
    assert await verdicts(daemon) == {"gpu3": "ISOLATE"}
    assert (raised.condition_level, raised.verdict) == (Level.SEPARATE_NPU, Verdict.ISOLATE)
    assert raised.evidence["description"] == "all_reduce_perf ended with status 1"
    assert raised.evidence["sender"] == "nccl-test"
    assert (folder / "tested").read_text().split() == uuids

    (folder / "broken").write_text("")
    mended = await ran(daemon, *script, path=environment)
    cleared = await subscriber.event(EventKind.CLEARED, CODE, "gpu3")
    assert mended[0] == 0, mended
    assert (cleared.verdict, cleared.why) == (Verdict.ALLOW, "recovered")
    assert await verdicts(daemon) == {}

    missing = await ran(daemon, *script[:3], "no-such-test", path=environment)
    assert (missing[0], await verdicts(daemon)) == (2, {})
    assert "test-gpus: no-such-test cannot be run" in missing[2]


async def test_a_gpu_is_reported_by_each_of_its_names_and_an_instance_alone(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    daemon = launch_gpus("8xH100")
    daemon.gpus.partition("gpu4", [3, 2])
    daemon.configure()
    (daemon.tables / TABLE.name).write_bytes(TABLE.read_bytes())
    await follow(daemon)
    uuid_of = await ids(daemon)
    pci = daemon.gpus.pci("gpu5")
    for gpu, name in (
        ("gpu3", "gpu3"),
        ("gpu3", uuid_of["gpu3"]),
        ("gpu5", pci),
        ("gpu5", f"0000{pci.upper()}"),
    ):
        reported = await nodeagent(daemon, "report", CODE, name)
        assert reported[:2] == (0, f"{CODE}.{uuid_of[gpu]}: taken\n")
        assert await verdicts(daemon) == {gpu: "ISOLATE"}
        assert (await nodeagent(daemon, "report", CODE, gpu, "--recover"))[0] == 0
        assert await verdicts(daemon) == {}
    (mig,) = [each for each in (await listed(daemon)) if each.name == "gpu4"]
    uuids = dict(each.split("=") for each in mig.attributes["mig_devices"].split(","))
    assert uuids.keys() == {"gi1", "gi2"}
    assert (await nodeagent(daemon, "report", CODE, uuids["gi2"]))[0] == 0
    assert await verdicts(daemon) == {"gpu4/gi2": "ISOLATE"}
    assert (await nodeagent(daemon, "report", CODE, "gpu4/gi2"))[1].endswith(": repeated\n")
    absent = await nodeagent(daemon, "report", CODE, "gpu4/gi5")
    assert "'gpu4/gi5' is not known; gpu4 has gi1, gi2; the nearest is gpu4/gi2" in absent[2]
    refused = await nodeagent(daemon, "report", CODE, "gpu3/gi2", "gpu5")
    assert refused[0] == 1
    assert "gpu3 is not divided into instances" in refused[2]
    assert await verdicts(daemon) == {"gpu4/gi2": "ISOLATE"}


PORTS_AND_MODULES = """
[codes.SITE_OPTICS]
kind = "link"
name = "Optics weak"
level = "PreSeparateFault"
affects = "chips_behind"

[codes.SITE_MEMTEST]
kind = "host"
name = "Memory test failed"
level = "SeparateFault"
affects = "node"
"""


async def test_a_port_and_a_memory_module_are_reported_and_speak_for_what_hangs_on_them(
    launch_gpus: LaunchGpus, follow: Follow, tmp_path: Path
) -> None:
    with namespace() as network:
        daemon = launch_gpus("2xH100", within=network.within)
        links, node = Tree(daemon.folder / "links"), NodeTree(tmp_path / "tree")
        links.interface("job0", "0000:00:01.0", "0000:10:00.0", "0000:11:00.0")
        links.chip("0000:00:01.0", "0000:10:00.0", f"{daemon.gpus.pci('gpu0')}.0")
        network.add("job0")
        node.sysfs = daemon.node.sysfs
        node.module("mc0/dimm1", "A2")
        daemon.sections = (
            "[drivers.link]",
            f'sysfs = "{links.root}"',
            'expected_ports = ["job0"]',
            'poll_interval = "200ms"',
            "[drivers.host]",
            'poll_interval = "200ms"',
            *(f'{key} = "{path}"' for key, path in node.config.items()),
        )
        daemon.configure()
        (daemon.tables / "site.toml").write_text(PORTS_AND_MODULES)
        await follow(daemon)

        async def are_read() -> bool:
            return {"job0", "dimm:A2"} <= (await ids(daemon)).keys() and not await verdicts(daemon)

        await daemon.comes(are_read, "port and module are read")
        for code, names, out_of_service in (
            ("SITE_OPTICS", ("job0", "0000:11:00.0"), {"job0": "NO_NEW_JOBS", "gpu0": "NO_NEW_JOBS"}),
            ("SITE_MEMTEST", ("dimm:A2", "A2", "mc0/dimm1"), {"dimm:A2": "ISOLATE", "node": "ISOLATE"}),
        ):
            for name in names:
                said = await nodeagent(daemon, "report", code, name)
                assert said[0] == 0, said
                assert await verdicts(daemon) == out_of_service
                assert (await nodeagent(daemon, "report", code, names[0], "--recover"))[1].endswith(
                    ": closed\n"
                )
                assert await verdicts(daemon) == {}
        unfit = await nodeagent(daemon, "report", "SITE_OPTICS", "dimm:A2")
        assert "dimm:A2 is of kind host and takes codes of kind host" in unfit[2]


def documented(number: int) -> Sequence[list[str]]:
    """The commands of one of the document's blocks, without the program."""
    lines = blocks("sh", DOCUMENT)[number].splitlines()
    return [words[1:] for words in (called(shlex.split(line, comments=True)) for line in lines) if words]


async def test_the_first_example_works_as_shipped(launch_gpus: LaunchGpus, follow: Follow) -> None:
    daemon = launch_gpus("8xH100")
    await follow(daemon)
    opens, why, ends = [await nodeagent(daemon, *words) for words in documented(0)]
    assert [each[0] for each in (opens, why, ends)] == [0, 0, 0]
    assert opens[1].endswith(": taken\n")
    assert "SITE_NCCL_TEST" in why[1]
    assert ends[1].endswith(": closed\n")


async def test_the_example_of_a_site_takes_out_a_gpu_once_its_table_is_there(
    launch_gpus: LaunchGpus, follow: Follow
) -> None:
    (shown,) = [text for text in blocks("toml", DOCUMENT) if "kind" in tomllib.loads(text)]
    assert shown == TABLE.read_text()
    daemon = launch_gpus("8xH100")
    daemon.configure()
    (daemon.tables / "site-tests.toml").write_text(shown)
    await follow(daemon)
    _, opens, ends = documented(1)
    assert (await nodeagent(daemon, *opens))[0] == 0
    assert await verdicts(daemon) == {"gpu3": "ISOLATE"}
    assert (await nodeagent(daemon, *ends))[0] == 0
    assert await verdicts(daemon) == {}
    assert (await nodeagent(daemon, "report", "SITE_STRAGGLER", "gpu5"))[2] == ""
    status = await daemon.status()
    assert [(each["code"], each["level"]) for each in status["conditions"]] == [
        ("SITE_STRAGGLER", "SubHealthFault")
    ]
