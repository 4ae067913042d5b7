"""Where nodes, certificates and targets come from and go to: files that change under way, and names."""

import asyncio
import json
import logging
import shutil
from pathlib import Path

import pytest

from nodeagent.client import Kind, Verdict
from nodeagent.fleet import nodes, prometheus
from nodeagent.fleet.credentials import ClientCertificateFiles, Credentials, CredentialsError
from nodeagent.fleet.nodes import Endpoint, NodesError
from nodeagent.fleet.state import Contact, NodeState, NodeStates, with_contact, with_devices
from tests.api.certificates import Authority
from tests.fleet.given import AT, answering, device, position
from tests.waiting import until

SOON_S = 0.01


@pytest.fixture
def files(tmp_path: Path) -> ClientCertificateFiles:
    own = Authority(tmp_path).issue("follower")
    return ClientCertificateFiles(
        authorities=tmp_path / "authority.pem", certificate=own.certificate, key=own.key
    )


async def test_a_list_is_read_again_and_a_bad_one_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(nodes, "READ_EVERY_S", SOON_S)
    path = tmp_path / "nodes"
    path.write_text("gpu-1\n")
    read = nodes.listing_of(str(path), tcp=True)
    used: list[list[str]] = []
    keeping = asyncio.create_task(
        nodes.follow_list(read, await read(), lambda found: used.append([each.name for each in found]))
    )
    path.write_text("gpu-1\ngpu-2\n")
    await until(lambda: used == [["gpu-1", "gpu-2"]], "the second node")
    path.write_text("gpu-1 gpu-2 gpu-3\n")
    await until(lambda: caplog.records, "the report")
    path.write_text("gpu-2\n")
    await until(lambda: used == [["gpu-1", "gpu-2"], ["gpu-2"]], "the third list")
    keeping.cancel()
    assert {record.message.partition(";")[0] for record in caplog.records} == {
        f"the nodes stay as they are: {path}:1: 3 fields"
    }


async def test_a_list_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NodesError) as error:
        await nodes.listing_of(str(tmp_path / "nodes"), tcp=True)()
    assert str(error.value) == f"{tmp_path / 'nodes'}: No such file or directory"


async def test_the_addresses_of_a_name_are_nodes() -> None:
    """The name that every machine can look up without a network."""
    found = await nodes.listing_of("dns:localhost:9000", tcp=True)()
    assert Endpoint(name="127.0.0.1:9000", address="127.0.0.1:9000", certificate_name="localhost") in found


async def test_an_unknown_name_is_named() -> None:
    with pytest.raises(NodesError) as error:
        await nodes.listing_of("dns:no-such-name.invalid", tcp=True)()
    assert str(error.value).startswith("dns:no-such-name.invalid: ")


def test_new_certificates_are_taken_and_bad_ones_left_alone(
    files: ClientCertificateFiles, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    credentials = Credentials(files)
    first = credentials.current()
    assert credentials.current() is first

    other = Authority(tmp_path, "other").issue("stranger")
    shutil.copy(other.certificate, files.certificate)
    assert credentials.current() is first
    assert credentials.current() is first
    shutil.copy(other.key, files.key)
    assert credentials.current() is not first
    said = [record.message for record in caplog.records]
    assert len(said) == 2
    assert said[0].startswith(
        "certificates changed but cannot be used; the last good ones stay in use:"
        f" --cert {files.certificate}, --key {files.key}: they cannot be used together: "
    )
    assert said[1] == "certificates changed: new connections use the new ones"


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("authorities", "--ca {}: holds no certificate: "),
        ("key", "--cert {}, --key {}: they cannot be used together"),
    ],
)
def test_files_that_are_no_certificates_are_named(
    files: ClientCertificateFiles, broken: str, said: str
) -> None:
    path: Path = getattr(files, broken)
    path.write_text("no certificate\n")
    named = [path] if broken == "authorities" else [files.certificate, path]
    with pytest.raises(CredentialsError) as error:
        Credentials(files)
    assert str(error.value).startswith(said.format(*named))


def test_a_file_that_is_missing_is_named_with_its_option(files: ClientCertificateFiles) -> None:
    files.certificate.unlink()
    with pytest.raises(CredentialsError) as error:
        Credentials(files)
    assert str(error.value) == f"--cert {files.certificate}: No such file or directory"


def test_each_node_is_a_target_with_its_verdict_for_relabelling() -> None:
    isolated = with_devices(
        answering("gpu-17"), [device("gpu0", Verdict.ISOLATE, kind=Kind.CHIP)], position(1)
    )
    local = with_contact(
        NodeState(endpoint=Endpoint(name="here", address="/run/n.sock")), Contact.AWAY, "UNAVAILABLE", AT
    )
    assert json.loads(prometheus.targets([local, isolated], 9108)) == [
        {
            "targets": ["gpu-17.cluster:9108"],
            "labels": {
                "node": "gpu-17",
                "__meta_nodeagent_verdict": "ISOLATE",
                "__meta_nodeagent_contact": "answers",
            },
        },
        {
            "targets": ["here:9108"],
            "labels": {
                "node": "here",
                "__meta_nodeagent_verdict": "UNKNOWN",
                "__meta_nodeagent_contact": "away",
            },
        },
    ]


async def test_the_targets_follow_the_board_and_a_disk_that_refuses_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(prometheus, "WRITE_EVERY_S", SOON_S)
    path, node_states = tmp_path / "later" / "targets.json", NodeStates()
    node_states.put(answering("gpu-17"))
    keeping = asyncio.create_task(prometheus.follow_states(path, 9108, node_states))
    await until(lambda: caplog.records, "the report")
    path.parent.mkdir()
    await until(path.exists, "the file")
    node_states.put(answering("gpu-18"))
    await until(lambda: len(json.loads(path.read_text())) == 2, "the second node")
    keeping.cancel()
    assert path.stat().st_mode & 0o777 == 0o644
    assert [each.name for each in path.parent.iterdir()] == ["targets.json"]
    assert len(caplog.records) == 1
    assert caplog.records[0].message.startswith(f"--file-sd {path}: cannot be written: ")
