"""The commands against a real daemon that reads a kernel log of its own."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.conftest import Nodeagent
from tests.harness.configuration import SHIPPED_TABLES
from tests.harness.node import Node, running, xid_line
from tests.shipped import OF_GPUS

ONCE_IS_TOO_OFTEN = """
[[frequency]]
id = "once"
codes = ["XID_79"]
times = 1
time_window = "24h"
level = "ManuallySeparateNPU"
"""


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node.within(tmp_path)


def test_a_line_of_the_kernel_is_at_once_in_the_stream_the_events_and_the_status(
    node: Node, nodeagent: Nodeagent
) -> None:
    with node.daemon() as stream, running("events", "--follow", "-o", "json") as following:
        assert nodeagent("scan", "-o", "json").json[0]["by"] == "daemon"
        node.write(xid_line(79))

        assert "0000:3b:00.0" in stream.until("XID_79")
        event = json.loads(following.until("XID_79"))
        status = nodeagent("status", "-o", "json").json[0]
        scan = nodeagent("scan", "-o", "json")

    assert (event["kind"], event["device"], event["verdict"]) == ("raised", "0000:3b:00.0", "ISOLATE")
    assert [(each["device"], each["code"]) for each in status["conditions"]] == [("0000:3b:00.0", "XID_79")]
    assert status["holds"] == []
    assert {each["name"]: each["verdict"] for each in status["devices"]} == {
        "node": "ALLOW",
        "0000:3b:00.0": "ISOLATE",
    }
    assert (scan.status, [each["name"] for each in scan.json[0]["faulty"]]) == (1, ["0000:3b:00.0"])


def test_a_follower_goes_on_where_it_was_when_the_daemon_comes_back(node: Node) -> None:
    with ExitStack() as stack:
        with node.daemon():
            following = stack.enter_context(running("events", "--follow", "--after", "0", "-o", "json"))
            node.write(xid_line(79))
            numbers = [json.loads(following.until("XID_79"))["seq"]]
        with node.daemon():
            node.write(xid_line(48))
            for line in following:
                numbers.append(json.loads(line)["seq"])
                if "XID_48" in line:
                    break

    assert len(numbers) > 1
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_events_are_found_by_number_device_code_and_kind(node: Node, nodeagent: Nodeagent) -> None:
    with node.daemon() as stream:
        for xid in (79, 48):
            node.write(xid_line(xid))
            stream.until(f"XID_{xid}")

        every = nodeagent("events", "--after", "0", "-o", "json").json
        found = {
            option: [event["code"] for event in nodeagent("events", *option.split(), "-o", "json").json]
            for option in (
                "--after 3",
                "--newest 1",
                "--code XID_79",
                "--code XID_*",
                "--kind raised --device 0000:3b:00.0",
            )
        }

    assert [event["seq"] for event in every] == list(range(1, len(every) + 1))
    assert found == {
        "--after 3": [event["code"] for event in every[3:]],
        "--newest 1": ["XID_48"],
        "--code XID_79": ["XID_79"],
        "--code XID_*": ["XID_79", "XID_48"],
        "--kind raised --device 0000:3b:00.0": ["XID_79", "XID_48"],
    }


def test_events_are_found_by_their_time(node: Node, nodeagent: Nodeagent) -> None:
    with node.daemon() as stream:
        node.write(xid_line(79))
        stream.until("XID_79")
        every = nodeagent("events", "--after", "0", "-o", "json").json
        lost = next(place for place, event in enumerate(every) if event["code"] == "XID_79")
        at = every[lost]["at"]
        found = {
            words: [event["seq"] for event in nodeagent("events", *words.split(), "-o", "json").json]
            for words in (
                f"--since {at}",
                f"--until {at}",
                "--since 1h",
                "--since 1h --code XID_* --until 2100-01-01",
                "--since 1h --newest 1",
                "--until 1970-01-02",
            )
        }
        with running("events", "--follow", "--since", at, "-o", "json") as following:
            followed = [json.loads(following.until("XID_79"))["seq"]]
            node.write(xid_line(48))
            followed.append(json.loads(following.until("XID_48"))["seq"])

    numbers = [event["seq"] for event in every]
    assert found == {
        f"--since {at}": numbers[lost:],
        f"--until {at}": numbers[:lost],
        "--since 1h": numbers,
        "--since 1h --code XID_* --until 2100-01-01": [numbers[lost]],
        "--since 1h --newest 1": numbers[-1:],
        "--until 1970-01-02": [],
    }
    assert followed == [numbers[lost], numbers[-1] + 1]


def test_what_no_one_knows_is_not_found_and_named(node: Node, nodeagent: Nodeagent) -> None:
    with node.daemon() as stream:
        node.write(xid_line(79))
        stream.until("XID_79")
        said = {
            words: (ran := nodeagent(*words.split()), ran.status, ran.out, ran.err)[1:]
            for words in (
                "devices npu99",
                "events --device npu99",
                "events --code NOPE",
                "events --code XID_48",
                "events --device node --kind raised",
                "events --device npu99 --newest 0",
            )
        }
        some = nodeagent("devices", "node", "npu99", "-o", "json")

    missing = "nodeagent: device 'npu99' is not known; there are: node, 0000:3b:00.0\n"
    assert said == {
        "devices npu99": (1, "", missing),
        "events --device npu99": (1, "", missing),
        "events --code NOPE": (1, "", "nodeagent: code 'NOPE' is in no table\n"),
        "events --code XID_48": (0, "", ""),
        "events --device node --kind raised": (0, "", ""),
        "events --device npu99 --newest 0": (0, "", ""),
    }
    assert (some.status, [each["name"] for each in some.json], some.err) == (1, ["node"], missing)


def test_why_leads_from_the_verdict_to_the_line_of_the_log_and_of_the_table(
    node: Node, nodeagent: Nodeagent
) -> None:
    with node.daemon() as stream:
        node.write(xid_line(79))
        stream.until("XID_79")

        why = nodeagent("why", "0000:3b:00.0", "-o", "json").json[0]
        text = nodeagent("why", "0000:3b:00.0").out
        unknown = nodeagent("why", "npu7")

    first = why["contributions"][0]
    assert (why["device"]["verdict"], first["reason"]["code"]) == ("ISOLATE", "XID_79")
    assert first["condition"]["evidence"]["line"] == xid_line(79)
    assert first["explanation"]["file"].startswith(f"{SHIPPED_TABLES}/xid.toml:")
    assert [event["kind"] for event in first["events"]] == ["raised"]
    assert "  cause: GPU has fallen off the bus (XID_79, SeparateNPU)\n" in text
    assert "\ncondition: XID_79 GPU has fallen off the bus, SeparateNPU\n" in text
    assert (unknown.status, unknown.err) == (
        1,
        "nodeagent: device: 'npu7' is not known; there are: node, 0000:3b:00.0\n",
    )


def test_why_shows_how_a_person_ends_what_a_rule_raised(node: Node, nodeagent: Nodeagent) -> None:
    node.lay_over(ONCE_IS_TOO_OFTEN, OF_GPUS)
    with node.daemon() as stream:
        node.write(xid_line(79))
        stream.until("promoted")
        why = nodeagent("why", "0000:3b:00.0").out
        form = nodeagent("why", "0000:3b:00.0", "-o", "json").json[0]
    assert "rule: once, fired at " in why
    advice = "It repeats: have 0000:3b:00.0 examined, or replaced, before you release it."
    assert f"  do: {advice}\n" in why
    assert [each["advice"] for each in form["contributions"] if each["promotion"]] == [advice]
    assert "ends by: nodeagent release 0000:3b:00.0 --reason WHY\n" in why


def test_explain_asks_the_daemon(node: Node, nodeagent: Nodeagent) -> None:
    with node.daemon():
        explained = nodeagent("explain", "XID_79", "-o", "json")

    assert (explained.status, explained.err, explained.json[0]["level"]) == (0, "", "SeparateNPU")


def test_without_a_daemon_scan_reads_the_sources_itself(node: Node, nodeagent: Nodeagent) -> None:
    good = nodeagent("scan", "-o", "json")
    with node.log.open("r+b", buffering=0) as log:
        log.write(f"3,1,1,-;{xid_line(79)}\n".encode())
        faulty = nodeagent("scan")

    assert (good.status, good.json[0]["by"], good.json[0]["result"]) == (0, "probe", "good")
    assert faulty.status == 1
    assert faulty.out.startswith("faulty: 0000:3b:00.0 ISOLATE: XID_79 GPU has fallen off the bus")


def test_scan_could_not_tell_where_a_required_source_cannot_be_read(node: Node, nodeagent: Nodeagent) -> None:
    node.log.unlink()

    ran = nodeagent("scan")

    assert ran.status == 2
    assert ran.out.startswith("unknown: kmsg: ")


def test_probe_runs_the_worker_by_hand_and_shows_what_it_reports(node: Node, nodeagent: Nodeagent) -> None:
    with node.log.open("r+b", buffering=0) as log:
        log.write(f"3,1,1,-;{xid_line(79)}\n".encode())
        text = nodeagent("probe", "kmsg")
    form = nodeagent("probe", "kmsg", "-o", "json")

    assert (text.status, form.status) == (0, 0)
    assert f"signal: 0000:3b:00.0 XID_79 once {xid_line(79)}\n" in text.out
    assert {"hello", "caught_up"} <= {report["type"] for report in form.json}
