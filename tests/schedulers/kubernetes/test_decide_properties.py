"""Whatever happens, the cluster comes to say what the daemon says, and others keep what is theirs."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from nodeagent.client import Level, Verdict
from nodeagent.schedulers.kubernetes import device_info
from nodeagent.schedulers.kubernetes.cluster import keeps_work_away, relevant
from nodeagent.schedulers.kubernetes.facts import SnapshotFacts, facts_of
from nodeagent.schedulers.kubernetes.state import ClusterEffect, Target
from tests.schedulers.kubernetes.snapshots import condition, device, node, npus, snapshot
from tests.schedulers.kubernetes.world import SETTINGS, World

THEIRS = {"key": "maintenance", "value": "", "effect": "NoSchedule"}
CODES = {Verdict.ISOLATE: "80E18005", Verdict.NO_NEW_JOBS: "80DE1801"}
STATUSES = (0, 403, 409, 404, 429, 500)

verdicts = st.sampled_from(list(Verdict))
Step = Callable[[World], None]


@st.composite
def _heard(draw: st.DrawFn) -> Step:
    chip, of_node, seq = draw(verdicts), draw(verdicts), draw(st.integers(1, 99))
    facts = facts_with(chip, of_node, seq)
    return lambda world: world.hear(facts)


def _failing(statuses: list[int]) -> Step:
    """The next orders fail so, one after another; then all are done."""

    def step(world: World) -> None:
        left = list(statuses)
        world.fails = lambda _: left.pop(0) if left else 0

    return step


steps = st.one_of(
    _heard(),
    st.integers(0, 400).map(lambda seconds: lambda world: world.pass_time(seconds)),
    st.lists(st.sampled_from(STATUSES), max_size=6).map(_failing),
    st.just(lambda world: world.be_silent()),
    st.just(lambda world: world.restart()),
    st.just(lambda world: world.watch_reports()),
    st.just(lambda world: world.another_writes_the_node(taints=(THEIRS,), condition=None)),
)


@given(st.lists(steps, max_size=25), verdicts, verdicts)
def test_in_the_end_the_cluster_says_what_the_daemon_says(
    course: list[Step], chip: Verdict, of_node: Verdict
) -> None:
    world = World(settings=replace(SETTINGS, device_info=True, node_info=True), taints=(THEIRS,))
    for step in course:
        step(world)
    before = world.our_taints

    world.fails = lambda _: 0
    facts = facts_with(chip, of_node, 1000)
    world.hear(facts)
    world.watch_reports()
    world.pass_time(200)

    verdict = relevant(facts, "chip")
    if keeps_work_away(verdict):
        assert len(world.our_taints) == 1
    else:
        assert world.our_taints == ([] if verdict is Verdict.ALLOW else before)
    assert THEIRS in world.taints
    assert world.condition is not None
    assert world.condition["status"] == {Verdict.ALLOW: "True", Verdict.UNKNOWN: "Unknown"}.get(
        verdict, "False"
    )
    written = world.infos[Target.DEVICE_INFO].data
    at_s = device_info.written_at_s(written)
    assert at_s is not None
    assert written == device_info.data(facts, super_pod_id=-1, server_index=-1, at_s=at_s)
    assert (Target.NODE_INFO in world.infos) == keeps_work_away(facts.node)
    assert world.acked == 1000


@given(st.lists(steps, max_size=25))
def test_nothing_is_written_while_another_writes_it(course: list[Step]) -> None:
    """Not even tried: ``World`` would fail for an order that overwrites it."""
    world = World(settings=replace(SETTINGS, device_info=True, node_info=True), noded=True)
    theirs = {"DeviceInfoCfg": "{}"}
    world.another_writes(Target.DEVICE_INFO, theirs)
    seen: list[ClusterEffect] = world.orders
    for step in course:
        step(world)
    assert world.infos[Target.DEVICE_INFO].data == theirs
    assert Target.NODE_INFO not in world.infos
    assert [each for each in seen if type(each).__name__ in ("Create", "Replace", "Delete")] == []


def facts_with(chip: Verdict, of_node: Verdict, seq: int) -> SnapshotFacts:
    code = CODES.get(chip, "")
    opened = [condition("npu3", code, Level.SEPARATE_NPU, 1)] if code else []
    devices = (node(of_node, CODES.get(of_node, "")), *npus(8, device("npu3", chip, code=code))[1:])
    return facts_of(snapshot(devices, conditions=opened, seq=seq))
