"""packaging/examples/kubernetes/job.yaml: Kubernetes' schema allows it, and its pod runs as it says."""

import os
from pathlib import Path

import pytest

from nodeagent.job.model import ExitStatus, Policy
from nodeagent.job.policy.arguments import parse
from nodeagent.job.policy.policy import settle
from nodeagent.job.shell.state_lifetime import ends_early
from tests.examples import pod
from tests.examples.pod import Pod
from tests.job.shell.supervised import build
from tests.schedulers.kubernetes import schemas

COUNTED_HERE_ALONE = "placements and failures in a row are counted in this placement alone"
IN_EMPTY_DIR = (
    f"lies in an emptyDir, which outlives the container and ends with the pod: {COUNTED_HERE_ALONE}"
)


def policy(tmp_path: Path) -> Policy:
    """Of the annotations and the options of the manifest."""
    lines = (f'{key}="{value}"\n' for key, value in pod.annotations().items())
    (tmp_path / "annotations").write_text("".join(lines))
    words = pod.container()["command"]
    own = [each.replace("/etc/podinfo", str(tmp_path)) for each in words[words.index("run") + 1 :]]
    return settle(parse(own), {}, None).policy


def test_every_object_is_as_the_published_schema_has_it() -> None:
    wrong = {each["kind"]: schemas.wrong_with(schemas.BY_KIND[each["kind"]], each) for each in pod.objects()}
    assert wrong == {"PersistentVolumeClaim": [], "Job": []}


def test_an_object_with_a_mistake_is_found() -> None:
    job = pod.job()
    job["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"] = ["78"]
    assert schemas.wrong_with(schemas.BY_KIND["Job"], job)


def test_its_names_fit_together() -> None:
    volumes = {each["name"]: each for each in pod.spec()["volumes"]}
    assert {each["name"] for each in pod.container()["volumeMounts"]} == volumes.keys()
    (claim,) = (each for each in pod.objects() if each["kind"] == "PersistentVolumeClaim")
    assert volumes["data"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert pod.spec()["restartPolicy"] == "Never"


def test_only_a_status_that_another_pod_cannot_change_ends_the_job() -> None:
    actions = {each: pod.action_for(each.value) for each in ExitStatus}
    assert {each.value for each, action in actions.items() if action == "FailJob"} == {78, 87}
    assert {each.value for each, action in actions.items() if action == "Ignore"} == {86}


def test_its_limits_fit_the_policy(tmp_path: Path) -> None:
    asked = policy(tmp_path)
    assert pod.job()["spec"]["backoffLimit"] == asked.placements
    assert pod.spec()["terminationGracePeriodSeconds"] > asked.grace_s


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """What the nodes have, and a claim. No daemon runs there."""
    (tmp_path / "run").mkdir()
    build(tmp_path / "nodeagent-job.pyz")
    tmp_path.chmod(0o755)
    return tmp_path


def volume(folder: Path, program: str) -> Path:
    """Of the pod's user."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(
        f"import os\nprint(os.environ['MA_SCHEDULE_CNT'], os.getppid())\n{program}\n"
    )
    owner = pod.spec()["securityContext"]
    os.chown(folder, owner["runAsUser"], owner["runAsGroup"])
    return folder


def one(cluster: Path, number: int, data: Path) -> Pod:
    volumes = {"data": data, "daemon": cluster / "run", "supervisor": cluster / "nodeagent-job.pyz"}
    # Without a daemon there is no verdict to wait for.
    env = {"NODEAGENT_JOB_VERDICT_WAIT": "0s"}
    return Pod(folder=cluster / f"pod-{number}", volumes=volumes, env=env)


def empty_dir(cluster: Path, of_pod: int) -> Path:
    """As a kubelet places it."""
    return cluster / f"pods/{of_pod}/volumes/kubernetes.io~empty-dir/data"


@pytest.mark.root
def test_an_error_of_the_program_ends_the_job_at_once(cluster: Path) -> None:
    data = volume(cluster / "claim", "raise ValueError('bad config')")
    outcome = pod.runs(lambda number: one(cluster, number, data))
    assert (outcome.statuses, outcome.reason) == ([87], "PodFailurePolicy")
    (ended,) = outcome.pods
    assert ended.output == "1 1\n"  # the first placement, and the supervisor is process 1
    assert "leaves with status 87: an error of the job itself: ValueError: bad config" in ended.errors
    assert (COUNTED_HERE_ALONE in ended.errors) == bool(ends_early(data))  # a machine may have /tmp in memory


@pytest.mark.root
def test_failures_in_a_row_are_counted_in_a_folder_that_is_kept(cluster: Path) -> None:
    data = volume(empty_dir(cluster, 0), "raise SystemExit(1)")
    outcome = pod.runs(lambda number: one(cluster, number, data))
    assert (outcome.statuses, outcome.reason) == ([75, 75, 75, 87], "PodFailurePolicy")
    assert [each.output for each in outcome.pods] == ["1 1\n", "2 1\n", "3 1\n", "4 1\n"]


@pytest.mark.root
def test_without_kept_counts_each_pod_says_so_and_the_job_ends_by_its_limit(cluster: Path) -> None:
    outcome = pod.runs(
        lambda number: one(cluster, number, volume(empty_dir(cluster, number), "raise SystemExit(1)"))
    )
    assert (outcome.statuses, outcome.reason) == ([75] * 9, "BackoffLimitExceeded")
    assert {each.output for each in outcome.pods} == {"1 1\n"}
    assert all(IN_EMPTY_DIR in each.errors for each in outcome.pods)
