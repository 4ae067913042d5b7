"""RDMA ports by sysfs: how many work, at which rate, and what their counters make of it."""

import pytest

from nodeagent.drivers.api import CallFailed
from nodeagent.drivers.link.ports import RdmaPort, RdmaState, rdma_ports, read_counters, read_state
from tests.daemon.staged import staged
from tests.drivers.link.namespace import Namespace
from tests.drivers.link.port_worker import signals, spec_of
from tests.drivers.link.tree import Tree

FEWER = "fewer_rdma_ports_than_expected"


def only(tree: Tree) -> RdmaPort:
    (port,) = rdma_ports(tree.root)
    return port


def test_a_port_is_read_as_the_kernel_writes_it(tree: Tree) -> None:
    tree.rdma("mlx5_0", "0000:00:01.0", "0000:02:00.0")
    assert read_state(only(tree)) == RdmaState(
        is_active=True, is_disabled=False, text="ACTIVE, LinkUp", rate_gbps=400.0
    )
    counters = read_counters(only(tree))
    assert counters["link_received_bytes_total"] == 4000.0
    assert counters["port_errors_total.symbol_error"] == 0.0


@pytest.mark.parametrize(
    ("files", "state"),
    [
        (
            {"state": "1: DOWN", "phys_state": "3: Disabled", "rate": "2.5 Gb/sec (1X SDR)"},
            RdmaState(is_active=False, is_disabled=True, text="DOWN, Disabled", rate_gbps=2.5),
        ),
        (
            {"state": "2: INIT"},
            RdmaState(is_active=False, is_disabled=False, text="INIT, LinkUp", rate_gbps=400.0),
        ),
        (
            {"state": "1: DOWN", "phys_state": "0: <unknown>"},
            RdmaState(is_active=False, is_disabled=False, text="DOWN, <unknown>", rate_gbps=400.0),
        ),
        ({"rate": "very fast"}, None),
        ({"state": ""}, None),
    ],
)
def test_states_are_read_and_what_makes_no_sense_is_refused(
    tree: Tree, files: dict[str, str], state: RdmaState | None
) -> None:
    tree.rdma("mlx5_0", "0000:00:01.0", "0000:02:00.0")
    tree.write("mlx5_0", **files)
    if state is not None:
        assert read_state(only(tree)) == state
    else:
        with pytest.raises(CallFailed, match="/ports/1/"):
            read_state(only(tree))


async def test_fewer_ports_at_their_rate_than_expected_are_a_fault_of_the_node(
    network: Namespace, tree: Tree
) -> None:
    for number in range(3):
        tree.rdma(f"mlx5_{number}", "0000:00:01.0", f"0000:0{number + 2}:00.0")
    async with staged(spec_of(network, tree, expected_rdma=3, expected_rate="400G")) as stage:
        await stage.signal(FEWER, "node", "recover")
        tree.write("mlx5_1", rate="200 Gb/sec (4X HDR)")
        fewer = await stage.signal(FEWER, "node", "occur")
        await stage.signal("PORT_SLOW", "mlx5_1", "occur")
        reason = "2 up at 400 Gb/s or more, drivers.link.expected_rdma is 3; down or slow: mlx5_1"
        assert fewer.evidence == {"reason": reason}
        before = len(stage.inputs)
        tree.write("mlx5_1", rate="400 Gb/sec (4X NDR)")
        await stage.signal(FEWER, "node", "recover", after=before)


async def test_a_port_whose_card_is_gone_is_one_too_few(network: Namespace, tree: Tree) -> None:
    for number in range(2):
        tree.rdma(f"mlx5_{number}", "0000:00:01.0", f"0000:0{number + 2}:00.0")
    async with staged(spec_of(network, tree, expected_rdma=2)) as stage:
        await stage.signal(FEWER, "node", "recover")
        (tree.root / "class/infiniband/mlx5_1").unlink()
        await stage.signal(FEWER, "node", "occur")


async def test_a_port_that_goes_down_and_comes_back_is_reported_once_though_its_counter_says_so_too(
    network: Namespace, tree: Tree
) -> None:
    tree.rdma("mlx5_0", "0000:00:01.0", "0000:02:00.0")
    async with staged(spec_of(network, tree)) as stage:
        await stage.polled("mlx5_0")
        tree.write("mlx5_0", counters__link_downed="1")
        tree.write("mlx5_0", state="1: DOWN", phys_state="2: Polling")
        down = await stage.signal("PORT_DOWN", "mlx5_0", "occur")
        assert down.evidence == {"state": "DOWN, Polling", "rdma": "mlx5_0"}
        tree.write("mlx5_0", state="4: ACTIVE", phys_state="5: LinkUp")
        await stage.signal("PORT_DOWN", "mlx5_0", "recover")
        await stage.polled("mlx5_0", times=2)
        assert signals(stage, "mlx5_0") == [("PORT_DOWN", "occur"), ("PORT_DOWN", "recover")]


async def test_counters_and_rate_are_telemetry(network: Namespace, tree: Tree) -> None:
    tree.rdma("mlx5_0", "0000:00:01.0", "0000:02:00.0")
    tree.write("mlx5_0", counters__symbol_error="7")
    async with staged(spec_of(network, tree)) as stage:
        await stage.polled("mlx5_0")
        readings = stage.health.readings["mlx5_0"]
        assert readings["port_errors_total.symbol_error"] == 7.0
        assert readings["link_rate_bits_per_second"] == 400e9
        assert readings["link_down.needed"] == 0.0
