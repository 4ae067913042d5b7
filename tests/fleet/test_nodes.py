"""A list of nodes: what it may hold, and what is said of what it may not."""

import pytest

from nodeagent.fleet.nodes import Endpoint, NodesError, from_addresses, from_text, name_and_port


def listed(text: str, *, tcp: bool = True) -> list[tuple[str, str]]:
    return [(each.name, each.address) for each in from_text(text, "nodes", tcp=tcp)]


def refused(text: str, *, tcp: bool = True) -> list[str]:
    with pytest.raises(NodesError) as error:
        from_text(text, "nodes", tcp=tcp)
    return str(error.value).splitlines()


@pytest.mark.parametrize(
    ("line", "node"),
    [
        ("gpu-17", ("gpu-17", "gpu-17:9443")),
        ("gpu-17.cluster:9000", ("gpu-17.cluster", "gpu-17.cluster:9000")),
        ("rack7 10.0.0.7", ("rack7", "10.0.0.7:9443")),
        ("[fd00::7]:9000", ("fd00::7", "[fd00::7]:9000")),
        ("[fd00::7]", ("fd00::7", "[fd00::7]:9443")),
        ("here /run/nodeagent/nodeagent.sock", ("here", "/run/nodeagent/nodeagent.sock")),
        ("  gpu-17   # the loud one", ("gpu-17", "gpu-17:9443")),
    ],
)
def test_a_line_is_an_address_or_a_name_and_an_address(line: str, node: tuple[str, str]) -> None:
    assert listed(f"# a comment\n\n{line}\n") == [node]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a b c", "nodes:1: 3 fields; a line is ADDRESS or NAME ADDRESS; an address is"),
        ("gpu-17:99999", "nodes:1: '99999' is not a port; a port is a number from 1 to 65535"),
        (":9443", "nodes:1: :9443: no host; "),
        ("fd00::7", "nodes:1: fd00::7: write an IPv6 address in brackets, as in [fd00::7]:9443"),
        ("here run/nodeagent.sock", "nodes:1: run/nodeagent.sock: a socket's path must be absolute"),
        ("", "nodes: no node in it; a line is "),
    ],
)
def test_what_is_wrong_is_named_with_its_line(line: str, reason: str) -> None:
    (said,) = refused(line)
    assert said.startswith(reason)


def test_everything_that_is_wrong_is_reported_at_once() -> None:
    assert refused("gpu-1\ngpu-1:9000\nother gpu-1\ngpu-2:x\n") == [
        "nodes:2: the name gpu-1 is that of line 1 too; remove one of them",
        "nodes:3: the address gpu-1:9443 is that of line 1 too; remove one of them",
        "nodes:4: 'x' is not a port; a port is a number from 1 to 65535",
    ]


def test_over_tcp_a_node_needs_certificates_and_over_a_socket_it_needs_none() -> None:
    assert refused("gpu-17", tcp=False) == [
        "nodes:1: gpu-17: nodes are reached over TCP with certificates; give --ca, --cert, --key"
    ]
    assert listed("/run/n.sock", tcp=False) == [("/run/n.sock", "/run/n.sock")]


def test_each_address_of_a_name_is_a_node_with_a_certificate_for_the_name() -> None:
    assert from_addresses("nodes.cluster", 9000, ["10.0.0.9", "fd00::7", "10.0.0.9"]) == (
        Endpoint(name="10.0.0.9:9000", address="10.0.0.9:9000", certificate_name="nodes.cluster"),
        Endpoint(name="[fd00::7]:9000", address="[fd00::7]:9000", certificate_name="nodes.cluster"),
    )


def test_a_name_may_have_a_port() -> None:
    assert name_and_port("nodes.cluster") == ("nodes.cluster", 9443)
    assert name_and_port("nodes.cluster:9000") == ("nodes.cluster", 9000)
    with pytest.raises(ValueError, match="no name after dns:"):
        name_and_port(":9000")
    with pytest.raises(ValueError, match="'' is not a port"):
        name_and_port("nodes.cluster:")
