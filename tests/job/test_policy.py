"""The policy of a job: each key at and beyond its range, from each source, and what wins."""

import json

import pytest

from nodeagent.job.model import HangMode, Policy, SubHealthyStrategy
from nodeagent.job.policy import body, keys
from nodeagent.job.policy.keys import (
    FAULT_RETRY_TIMES,
    HANG_RETRY,
    JOB_RETRY_NUM,
    POD_RETRY_NUM,
    RECOVER_STRATEGY,
    SUB_HEALTHY_STRATEGY,
    UNCONDITIONAL_RETRY,
)
from nodeagent.job.policy.policy import PolicyError, PolicySetting, read_file, resolve

IN_RANGE: tuple[tuple[str, str, object], ...] = (
    ("kind", "training", "training"),
    ("kind", "notebook", "notebook"),
    ("in-place", "true", True),
    ("in-place", "False", False),
    ("yields", "true", True),
    ("placements", "1", 1),
    ("placements", "128", 128),
    ("refill", "true", True),
    ("in-place-retries", "0", 0),
    ("in-place-retries", "128", 128),
    ("hang", "off", HangMode.OFF),
    ("hang", "notify", HangMode.NOTIFY),
    ("hang", "restart", HangMode.RESTART),
    ("error-row", "2", 2),
    ("node-replacements", "0", 0),
    ("sub-health", "graceExit", "graceExit"),
    ("hang-row", "1", 1),
    ("hang-row", "3", 3),
    ("hang-time", "10s", 10.0),
    ("hang-time", "12h", 43200.0),
    ("start-time", "10s", 10.0),
    ("start-time", "24h", 86400.0),
    ("grace", "0", 0.0),
    ("grace", "1h", 3600.0),
    ("heal-timeout", "1s", 1.0),
    ("heal-timeout", "24h", 86400.0),
    ("verdict-wait", "0s", 0.0),
    ("verdict-wait", "250ms", 0.25),
    ("verdict-wait", "5m", 300.0),
    ("blame", "0s", 0.0),
    ("blame", "10m", 600.0),
    ("need-daemon", "true", True),
    ("need-path", "/data", ("/data",)),
    ("need-path", "/data, /ckpt/run 7", ("/data", "/ckpt/run 7")),
    ("path-time", "1s", 1.0),
    ("path-time", "5m", 300.0),
    ("memory-wait", "0s", 0.0),
    ("memory-wait", "10m", 600.0),
)

BEYOND: tuple[tuple[str, str], ...] = (
    ("kind", "mining"),
    ("in-place", "yes"),
    ("yields", "1"),
    ("placements", "0"),
    ("placements", "129"),
    ("unconditional", "on"),
    ("refill", ""),
    ("in-place-retries", "-1"),
    ("in-place-retries", "129"),
    ("hang", "kill"),
    ("hang-row", "0"),
    ("hang-row", "4"),
    ("hang-time", "9s"),
    ("hang-time", "13h"),
    ("start-time", "9s"),
    ("start-time", "25h"),
    ("grace", "61m"),
    ("grace", "-1s"),
    ("error-row", "1"),
    ("sub-health", "hotSwitch"),
    ("error-row", "129"),
    ("node-replacements", "-1"),
    ("node-replacements", "129"),
    ("heal-timeout", "0s"),
    ("heal-timeout", "25h"),
    ("verdict-wait", "6m"),
    ("verdict-wait", "soon"),
    ("blame", "11m"),
    ("need-daemon", "2"),
    ("need-path", "data"),
    ("need-path", "/data,ckpt"),
    ("need-path", ","),
    ("path-time", "0s"),
    ("path-time", "6m"),
    ("memory-wait", "11m"),
)


def _from(source: str, name: str, text: str) -> Policy:
    key = keys.BY_NAME[name]
    if source == "site":
        return resolve(defaults={name.replace("-", "_"): text}).policy
    if source == "file":
        return resolve(files=read_file(f"{name}={text}\n", "job.policy")).policy
    if source == "environment":
        return resolve(environ={key.variable: text}).policy
    return resolve(flags={name: text}).policy


SOURCES = ("site", "file", "environment", "flag")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("name", "text", "value"), IN_RANGE)
def test_a_value_in_range_is_taken_from_each_source(source: str, name: str, text: str, value: object) -> None:
    assert getattr(_from(source, name, text), keys.BY_NAME[name].field) == value


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("name", "text"), BEYOND)
def test_a_value_beyond_its_range_names_key_source_and_range(source: str, name: str, text: str) -> None:
    with pytest.raises(PolicyError) as refused:
        _from(source, name, text)
    key = keys.BY_NAME[name]
    where = {
        "site": f"{name.replace('-', '_')} (the site's [jobs.defaults] {name.replace('-', '_')})",
        "file": f"{name} (job.policy, line 1)",
        "environment": f"{key.variable} (environment)",
        "flag": f"{name} (--{name})",
    }[source]
    assert refused.value.problems == (f"{where}: {key.form.right}, not {text!r}",)


def test_each_key_has_a_case_in_range_and_one_beyond() -> None:
    names = set(keys.BY_NAME)
    assert {name for name, _ in BEYOND} == names
    assert {name for name, _, _ in IN_RANGE} == names - {"unconditional"}


def test_without_any_source_nothing_is_allowed() -> None:
    assert resolve().policy == Policy()


# ---------------------------------------------------------------------- annotations


def _annotated(*lines: str) -> Policy:
    return resolve(files=read_file("\n".join(lines), "annotations")).policy


SEED = """
{
    "kind": "job",
    "metadata": {
        "annotations": {
            "fault-tolerance/job-retry-num": "8",
            "fault-tolerance/job-unconditional-retry": "true",
           "fault-tolerance/hang-retry": "true",
            "fault-tolerance/pod-retry-num": "3"
        }
    }
}"""
"""As ModelArts prints it in "Recovering a Training Job"."""


@pytest.mark.parametrize("form", ["as printed", "in one line", "with a mark of its encoding", "with more"])
def test_the_body_of_a_job_is_read_as_it_is(form: str) -> None:
    values = json.loads(SEED)
    text = {
        "as printed": SEED,
        "in one line": json.dumps(values),
        "with a mark of its encoding": "\ufeff" + SEED,
        "with more": json.dumps({**values, "spec": {"resource": {"node_count": 2}}}),
    }[form]
    assert _resolved(text) == Policy(
        in_place=True, placements=8, unconditional=True, hang=HangMode.RESTART, node_replacements=3
    )


def _resolved(text: str) -> Policy:
    return resolve(files=read_file(text, "job.json")).policy


def test_labels_of_a_body_are_read_too() -> None:
    of_labels = {"metadata": {"labels": {"fault-retry-times": "3", "app": "x"}}}
    assert _resolved(json.dumps(of_labels)) == Policy(placements=3, unconditional=True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"kind": "job",\n "metadata": }', "job.json: line 2, column 14: not JSON: Expecting value"),
        ("[]", f"job.json: an object is needed: {body.EXAMPLE}"),
        ("{}", f"job.json: metadata: missing; the annotations are needed as in {body.EXAMPLE}"),
        (
            f'{{"{JOB_RETRY_NUM}": "3"}}',
            f"job.json: metadata: missing; the annotations are needed as in {body.EXAMPLE}",
        ),
        (
            '{"metadata": {"name": "x"}}',
            f"job.json: metadata.annotations: missing; they are needed as in {body.EXAMPLE}",
        ),
        (
            '{"metadata": {"annotations": ["3"]}}',
            f'job.json: metadata.annotations: an object is needed, as in {body.EXAMPLE}, not ["3"]',
        ),
        (
            f'{{"metadata": {{"annotations": {{"{JOB_RETRY_NUM}": 3}}}}}}',
            f'job.json: metadata.annotations: {JOB_RETRY_NUM}: a text is needed: "3", not 3',
        ),
        (
            f'{{"metadata": {{"annotations": {{"{HANG_RETRY}": true}}}}}}',
            f'job.json: metadata.annotations: {HANG_RETRY}: a text is needed: "true", not true',
        ),
        (
            f'{{"metadata": {{"annotations": {{"{JOB_RETRY_NUM}": "3", "{JOB_RETRY_NUM}": "4"}}}}}}',
            f"job.json: {JOB_RETRY_NUM}: given twice; remove one of them",
        ),
        (
            f'{{"metadata": {{"annotations": {{"{JOB_RETRY_NUM}": "0"}}}}}}',
            f"{JOB_RETRY_NUM} (job.json, metadata.annotations): a whole number from 1 to 128, not '0'",
        ),
        ('{"kind": 1, "metadata": {}}', 'job.json: kind: a text is needed: "job", not 1'),
    ],
)
def test_a_body_that_is_not_right_names_the_key_and_what_would_be(text: str, problem: str) -> None:
    with pytest.raises(PolicyError) as refused:
        _resolved(text)
    assert refused.value.problems == (problem,)


def test_a_policy_file_is_no_body() -> None:
    with pytest.raises(PolicyError) as refused:
        read_file(SEED, "job.policy", own=True)
    assert str(refused.value) == (
        "job.policy: lines KEY=VALUE are needed; give the JSON of a job to --annotations"
    )


def test_the_vendors_annotations_as_the_downward_api_writes_them() -> None:
    policy = _annotated(
        f'{JOB_RETRY_NUM}="8"',
        f'{UNCONDITIONAL_RETRY}="true"',
        f'{HANG_RETRY}="true"',
        f'{POD_RETRY_NUM}="3"',
        'kubernetes.io/config.source="api"',
        'note="it says \\"hello\\"\\nand more"',
    )
    assert policy == Policy(
        in_place=True, placements=8, unconditional=True, hang=HangMode.RESTART, node_replacements=3
    )


@pytest.mark.parametrize(("number", "right"), [("0", False), ("1", True), ("128", True), ("129", False)])
@pytest.mark.parametrize("name", [JOB_RETRY_NUM, POD_RETRY_NUM])
def test_a_number_of_retries_is_from_1_to_128(name: str, number: str, right: bool) -> None:
    lines = [f"{name}={number}"] + ([f"{JOB_RETRY_NUM}=3"] if name == POD_RETRY_NUM else [])
    if right:
        assert _annotated(*lines).in_place
    else:
        with pytest.raises(
            PolicyError, match=f"^{name} \\(annotations, line 1\\): a whole number from 1 to 128"
        ):
            _annotated(*lines)


@pytest.mark.parametrize(
    ("name", "text"), [(UNCONDITIONAL_RETRY, "true"), (HANG_RETRY, "true"), (POD_RETRY_NUM, "3")]
)
def test_what_needs_the_jobs_retries_is_refused_without_them(name: str, text: str) -> None:
    with pytest.raises(PolicyError) as refused:
        _annotated(f"{name}={text}")
    assert refused.value.problems == (
        f"{name} (annotations, line 1): needs {JOB_RETRY_NUM} (or placements), a whole number from 1 to 128",
    )


@pytest.mark.parametrize("name", [UNCONDITIONAL_RETRY, HANG_RETRY])
def test_what_is_switched_off_needs_nothing(name: str) -> None:
    assert _annotated(f"{name}=false") == Policy()


@pytest.mark.parametrize("name", [UNCONDITIONAL_RETRY, HANG_RETRY])
def test_a_switch_is_true_or_false(name: str) -> None:
    with pytest.raises(PolicyError, match="true or false, not 'always'"):
        _annotated(f"{name}=always", f"{JOB_RETRY_NUM}=3")


def test_the_retries_of_mindcluster_are_unconditional_ones() -> None:
    assert _annotated(f"{FAULT_RETRY_TIMES}=100") == Policy(placements=100, unconditional=True)
    assert _annotated(f"{FAULT_RETRY_TIMES}=0") == Policy()


def test_the_jobs_own_retries_go_before_those_of_mindcluster() -> None:
    policy = _annotated(f"{JOB_RETRY_NUM}=3", f"{FAULT_RETRY_TIMES}=7")
    assert (policy.placements, policy.unconditional, policy.in_place) == (3, True, True)


@pytest.mark.parametrize("text", ["-1", "101", "many"])
def test_the_retries_of_mindcluster_have_a_range(text: str) -> None:
    with pytest.raises(PolicyError, match="a whole number from 0 to 100"):
        _annotated(f"{FAULT_RETRY_TIMES}={text}")


@pytest.mark.parametrize("text", ["ignore", "graceExit", "forceExit", "hotSwitch"])
def test_the_strategy_for_weak_chips_is_told_as_it_is_given(text: str) -> None:
    policy = _annotated(f'{SUB_HEALTHY_STRATEGY}="{text}"')
    assert policy == Policy(strategy=text, sub_health=SubHealthyStrategy(text))


NEEDED = f"{JOB_RETRY_NUM} (or placements)"


@pytest.mark.parametrize(
    ("lines", "note"),
    [
        (("subHealthyStrategy=ignore",), ()),
        (("subHealthyStrategy=forceExit", f"{JOB_RETRY_NUM}=3"), ()),
        (
            ("subHealthyStrategy=graceExit",),
            (f"{SUB_HEALTHY_STRATEGY} (a, line 1): graceExit needs {NEEDED}: the job stays",),
        ),
        (
            ("subHealthyStrategy=hotSwitch", f"{JOB_RETRY_NUM}=3"),
            (f"{SUB_HEALTHY_STRATEGY} (a, line 1): hotSwitch is reported to schedulers, and the job stays",),
        ),
    ],
)
def test_a_strategy_that_will_not_be_done_is_noted(lines: tuple[str, ...], note: tuple[str, ...]) -> None:
    assert resolve(files=read_file("\n".join(lines), "a")).notes == note


def test_strategies_of_recovery_are_told_as_they_are_given() -> None:
    every = "retry,recover,recover-in-place,elastic-training,dump,exit"
    assert _annotated(f'{RECOVER_STRATEGY}="{every}"').strategy == every


@pytest.mark.parametrize(
    ("name", "text"), [(SUB_HEALTHY_STRATEGY, "softExit"), (RECOVER_STRATEGY, "retry,reboot")]
)
def test_an_unknown_strategy_is_refused(name: str, text: str) -> None:
    with pytest.raises(PolicyError, match=f"not '{text}'"):
        _annotated(f"{name}={text}")


# ---------------------------------------------------------------------- what a site sets


@pytest.mark.parametrize(
    ("name", "text", "as_limit", "says"),
    [
        ("grace", "30s", False, None),
        ("in_place_retries", "5", True, None),
        ("hang", "notify", True, None),
        ("grace", "2h", False, "grace: a time from 0s to 1h, as 90s, 5m or 2h, not '2h'"),
        ("hang", "kill", True, "hang: one of off, notify, restart, not 'kill'"),
        ("kind", "training", True, "kind: this key has no limit"),
    ],
)
def test_what_a_site_sets_is_checked_by_the_same_table(
    name: str, text: str, as_limit: bool, says: str | None
) -> None:
    assert keys.problem(name, text, as_limit=as_limit) == says


def test_a_key_of_the_site_that_is_not_known_is_named() -> None:
    assert str(keys.problem("gracious", "1s")).startswith("gracious: no such key; the keys are kind, ")


# ---------------------------------------------------------------------- what wins


def test_later_sources_win() -> None:
    files = (PolicySetting(name="grace", text="2s", source="job.policy, line 1"),)
    assert resolve(defaults={"grace": "1s"}).policy.grace_s == 1
    assert resolve(defaults={"grace": "1s"}, files=files).policy.grace_s == 2
    environ = {"NODEAGENT_JOB_GRACE": "3s"}
    assert resolve(defaults={"grace": "1s"}, files=files, environ=environ).policy.grace_s == 3
    flags = {"grace": "4s"}
    assert resolve(files=files, environ=environ, flags=flags).policy.grace_s == 4


@pytest.mark.parametrize(("minutes", "seconds"), [("10", 600), ("720", 43200)])
def test_the_vendors_time_of_a_hang_is_in_minutes(minutes: str, seconds: int) -> None:
    assert resolve(environ={"MA_HANG_DETECT_TIME": minutes}).policy.hang_time_s == seconds


@pytest.mark.parametrize("minutes", ["9", "721", "10m"])
def test_the_vendors_time_of_a_hang_has_a_range(minutes: str) -> None:
    with pytest.raises(PolicyError) as refused:
        resolve(environ={"MA_HANG_DETECT_TIME": minutes})
    assert refused.value.problems == (
        f"MA_HANG_DETECT_TIME (environment): a whole number from 10 to 720 (minutes), not {minutes!r}",
    )


def test_our_own_variable_goes_before_the_vendors() -> None:
    environ = {"NODEAGENT_JOB_HANG_TIME": "1h", "MA_HANG_DETECT_TIME": "10"}
    assert resolve(environ=environ).policy.hang_time_s == 3600


def test_a_limit_of_the_site_caps_whatever_was_set() -> None:
    resolved = resolve(
        flags={"placements": "100", "grace": "5m", "hang": "restart", "in-place": "true"},
        limits={"placements": "3", "grace": "30s", "hang": "notify", "in_place": "false", "blame": "10m"},
    )
    assert resolved.policy == Policy(placements=3, grace_s=30, hang=HangMode.NOTIFY, in_place=False)
    assert resolved.notes == (
        "placements: the site's limit is 3, and holds",
        "grace: the site's limit is 30s, and holds",
        "hang: the site's limit is notify, and holds",
        "in-place: the site's limit is false, and holds",
    )


def test_a_limit_below_what_holds_by_default_needs_no_words() -> None:
    resolved = resolve(limits={"grace": "10s"})
    assert (resolved.policy.grace_s, resolved.notes) == (10, ())


def test_all_bad_values_are_named_at_once() -> None:
    with pytest.raises(PolicyError) as refused:
        resolve(flags={"grace": "soon"}, environ={"NODEAGENT_JOB_HANG": "maybe"}, limits={"kind": "training"})
    assert refused.value.problems == (
        "NODEAGENT_JOB_HANG (environment): one of off, notify, restart, not 'maybe'",
        "grace (--grace): a time from 0s to 1h, as 90s, 5m or 2h, not 'soon'",
        "the site's [jobs.limits] kind: this key has no limit",
    )


def test_an_unknown_key_is_refused_with_those_there_are() -> None:
    with pytest.raises(PolicyError, match=r"^grase \(job.policy, line 2\): no such key; the keys are kind, "):
        resolve(files=(PolicySetting(name="grase", text="1s", source="job.policy, line 2", own=True),))


def test_an_unknown_annotation_is_somebody_elses() -> None:
    resolved = resolve(files=read_file('app="train"\nfault-tolerance/new="1"\n', "annotations"))
    assert resolved.policy == Policy()
    assert resolved.notes == ("fault-tolerance/new (annotations, line 2): not known, it is passed over",)


def test_a_grace_that_the_scheduler_cuts_short_is_refused() -> None:
    with pytest.raises(
        PolicyError, match=r"grace \(--grace\): below the 30 s after which the scheduler kills"
    ):
        resolve(flags={"grace": "30s"}, kill_wait_s=30)
    assert resolve(flags={"grace": "29s"}, kill_wait_s=30).policy.grace_s == 29


def test_a_line_that_is_none_is_refused_with_its_number() -> None:
    with pytest.raises(PolicyError) as refused:
        read_file('# a comment\n\ngrace=1s\nwhat is this\nhang="off\n', "job.policy", own=True)
    assert refused.value.problems == (
        "job.policy, line 4: key=value or key=\"value\", not 'what is this'",
        'job.policy, line 5: key=value or key="value", not \'hang="off\'',
    )
