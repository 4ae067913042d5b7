"""The devices as tables and in detail: what is measured, and what is not known."""

from collections.abc import Mapping
from typing import Any

from nodeagent.cli.ask.device_details import details
from nodeagent.cli.ask.device_tables import device_tables, in_tables, now
from nodeagent.cli.ask.measured import Readings, count, measured
from nodeagent.cli.shared.output import write_table
from nodeagent.messages.pb import types_pb2

GIB = float(2**30)
NPU: Readings = {
    "temperature_celsius": 41.0,
    "temperature_celsius.memory": 39.0,
    "power_watts": 93.5,
    "utilization_ratio.aicore": 0.25,
    "utilization_ratio.aicpu": 0.9,
    "memory_used_bytes": 3 * GIB,
    "memory_total_bytes": 64 * GIB,
    "ecc_corrected_total.hbm": 12.0,
    "ecc_corrected_total.ddr": 1.0,
    "ecc_uncorrected_total.hbm": 0.0,
    "link_up.hccs": 1.0,
    "link_up.ub3": 0.0,
}
GPU: Readings = {
    "temperature_celsius": 34.0,
    "power_watts": 72.0,
    "power_limit_watts": 700.0,
    "utilization_ratio.gpu": 1.0,
    "memory_used_bytes": 0.0,
    "memory_total_bytes": 79.6 * GIB,
    "ecc_corrected_total": 30.0,
    "ecc_corrected_total.dram": 28.0,
    "ecc_uncorrected_total": 0.0,
    "nvlink_links_up": 17.0,
    "nvlink_links_missing": 1.0,
    "link_up.0": 1.0,
    "throttle.idle": 1.0,
    "throttle.hw_thermal": 1.0,
}


def device(name: str, kind: str = "CHIP", *, users: int | None = 0, **more: Any) -> types_pb2.Device:
    values: dict[str, Any] = {
        "observed": True,
        "verdict": "VERDICT_ALLOW",
        "handling": "HANDLING_NONE",
        **more,
    }
    made = types_pb2.Device(name=name, id=f"id-{name}", kind=f"KIND_{kind}", **values)
    if users is not None:
        made.holders.CopyFrom(
            types_pb2.Holders(
                holders=[types_pb2.Holder(pid=7 + each, command="python") for each in range(users)]
            )
        )
    return made


def texts(*devices: types_pb2.Device, wide: bool = False, **readings: Readings) -> list[list[list[str]]]:
    return [[table.heads, *table.rows] for table in device_tables(devices, readings, wide=wide)]


def test_a_chip_is_a_line_with_what_is_measured_of_it() -> None:
    assert texts(device("npu10"), device("npu9", users=2), npu9=NPU) == [
        [
            ["DEVICE", "VERDICT", "TEMP", "POWER", "USE", "    MEMORY", "USERS", "ECC C/U", "LINKS"],
            ["npu9", "ALLOW", "41 C", " 94 W", "25%", "3.0/64 GiB", "    2", "   13/0", "  1/2"],
            ["npu10", "ALLOW", "   -", "    -", "  -", "         -", "    0", "      -", "    -"],
        ]
    ]


def test_the_total_of_a_gpu_is_that_of_its_driver_and_links_that_are_missing_are_counted() -> None:
    values = measured(device("gpu0"), GPU)
    assert (values.ecc_corrected, values.links_up, values.links_total, values.use) == (30.0, 17, 18, 1.0)


def test_of_a_chip_that_is_not_observed_nothing_is_shown_as_if_it_were_of_now() -> None:
    [[_, row]] = texts(device("npu9", users=2, observed=False, verdict="VERDICT_UNKNOWN"), npu9=NPU)
    assert [each.strip() for each in row] == ["npu9", "UNKNOWN", *["-"] * 7]


def test_no_line_of_sixteen_chips_is_wider_than_a_terminal(capsys: Any) -> None:
    worst = {
        **NPU,
        "ecc_corrected_total.hbm": 987_654_321.0,
        "power_watts": 1200.0,
        "temperature_celsius": 101.0,
    }
    chips = [device(f"npu{each}", users=12, verdict="VERDICT_NO_NEW_JOBS") for each in range(16)]
    for table in device_tables(chips, {each.name: worst for each in chips}, wide=False):
        write_table(table.heads, table.rows)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_on_a_narrow_terminal_the_last_measurements_are_left_out_and_named() -> None:
    (table,) = device_tables([device("npu9")], {"npu9": NPU}, wide=False, room=40)
    assert table.heads == ["DEVICE", "VERDICT", "TEMP", "POWER", "USE"]
    assert table.left_out == ["MEMORY", "USERS", "ECC C/U", "LINKS"]
    (table,) = device_tables([device("npu9")], {"npu9": NPU}, wide=False, room=3)
    assert table.rows == [["npu9", "ALLOW"]]


def test_each_kind_has_its_own_table_and_well_parts_that_are_no_chips_are_left_out() -> None:
    port = device(
        "eth2", "LINK", verdict="VERDICT_NO_NEW_JOBS", users=None, attributes={"chips": "npu1,npu2"}
    )
    switch, node = device("ub0", "UNIFIEDBUS", users=None), device("node", "NODE", users=None)
    shown, well = in_tables([node, device("npu0"), port, switch])
    assert ([each.name for each in shown], [each.name for each in well]) == (
        ["npu0", "eth2"],
        ["node", "ub0"],
    )
    link = {"link_up": 0.0, "link_rate_bytes_per_second": 2.5e10, "link_losses_total.needed": 3.0}
    assert texts(port, switch, eth2=link) == [
        [
            ["DEVICE", "VERDICT", "STATE", "    RATE", "LOSSES", "ERRORS", "CHIPS"],
            ["eth2", "NO_NEW_JOBS", "down", "200 Gb/s", "     3", "     -", "npu1,npu2"],
        ],
        [["DEVICE", "VERDICT", "HANDLING", "OBSERVED"], ["ub0", "ALLOW", "NONE", "yes"]],
    ]


def test_wide_also_names_the_part() -> None:
    part: Mapping[str, str] = {
        "product": "Atlas 800T A3",
        "serial": "2102",
        "slot": "3",
        "pci": "0000:01:00.0",
    }
    [[heads, row]] = texts(device("npu3", attributes=part), wide=True, npu3=NPU)
    assert dict(zip(heads, row, strict=True)) | part_columns(part) == dict(zip(heads, row, strict=True))


def part_columns(part: Mapping[str, str]) -> dict[str, str]:
    return {key.upper(): value for key, value in part.items()} | {"FIRMWARE": "-"}


def test_the_details_have_what_is_known_and_no_line_for_the_rest() -> None:
    gpu = device(
        "gpu0",
        users=1,
        vendor="nvidia",
        attributes={"product": "H100", "serial": "16", "pci": "0000:1b:00.0"},
    )
    assert dict(details(now(gpu, {"gpu0": GPU}))) == {
        "kind:": "chip, nvidia",
        "part:": "product H100, serial 16",
        "place:": "pci 0000:1b:00.0",
        "temperature:": "34 C",
        "power:": "72 W, limit 700 W",
        "use:": "gpu 100%",
        "slowed by:": "hw_thermal",
        "memory:": "0.0/80 GiB",
        "ecc:": "corrected: 30, dram 28; uncorrected: 0",
        "links:": "17/18 up",
        "users:": "python (pid 7)",
        "id:": "id-gpu0",
    }
    assert dict(details(now(device("npu3"), {"npu3": NPU})))["links:"] == "1/2 up, down: ub3"
    lost = device("gpu0", observed=False, users=None)
    assert [label for label, _ in details(now(lost, {"gpu0": GPU}))] == ["kind:", "id:"]


def test_large_counts_are_short_and_small_ones_exact() -> None:
    assert [count(each) for each in (None, 0, 9999, 12_345, 3_400_000, 25e6, 7.5e9)] == [
        *("-", "0", "9999", "12k", "3.4M", "25M", "7.5G"),
    ]
