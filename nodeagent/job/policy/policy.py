"""The policy of a job, put together from all its sources; a later source wins.

The site's defaults < files (annotations, or a policy file) < the environment < the command line; the site's
limits cap the result. One bad value refuses all, because a job must not run under another policy than was
meant. ``resolve`` and ``read_file`` are pure; ``settle`` reads the files that the user names.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from nodeagent.job import model
from nodeagent.job.lines import Welcome
from nodeagent.job.model import HangMode, Policy, SubHealthyStrategy
from nodeagent.job.policy import body, keys
from nodeagent.job.policy.arguments import Arguments
from nodeagent.job.policy.keys import ValueForm
from nodeagent.job.shell import files

_LINE: Final = re.compile(r"([^\s=]+)\s*=\s*(.*)")
_PREFIX: Final = model.POLICY_PREFIX
_OF_THE_PLATFORM: Final = "fault-tolerance/"


class PolicyError(ValueError):
    """Every bad value, a line each: key, source, what would be right."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySetting:
    """One value that somebody gave. ``source`` names the place for people: file and line, variable, flag.

    ``own``: it stands in a file of nothing but a policy, so that a key that is not known is a mistake. Among
    annotations and labels it is somebody else's.
    """

    name: str
    text: str
    source: str
    own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """``notes`` is for people: what was lowered to a limit, what is not known."""

    policy: Policy
    notes: tuple[str, ...] = ()


def resolve(
    *,
    defaults: Mapping[str, str] | None = None,
    files: Iterable[PolicySetting] = (),
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
    in_step: bool = False,
    kill_wait_s: float | None = None,
) -> Resolved:
    """``flags`` are by key name. ``kill_wait_s``: how long the scheduler itself waits between TERM and KILL.

    Raises ``PolicyError``.
    """
    reading = _Reading()
    for name, text in (defaults or {}).items():
        reading.of_own_key(PolicySetting(name=name, text=text, source=f"the site's [jobs.defaults] {name}"))
    reading.files(tuple(files))
    reading.environment(environ or {})
    for name, text in (flags or {}).items():
        reading.of_own_key(PolicySetting(name=name, text=text, source=f"--{name}"))
    policy = replace(Policy(in_step=in_step), **reading.values)
    policy = reading.limited(policy, limits or {})
    reading.check_together(policy, kill_wait_s)
    reading.note_strategy(policy)
    if reading.problems:
        raise PolicyError(reading.problems)
    return Resolved(policy=policy, notes=tuple(reading.notes))


def read_file(text: str, path: str, *, own: bool = False) -> tuple[PolicySetting, ...]:
    """Lines ``key=value`` and ``key="value"``. The latter is how Kubernetes' downward API writes annotations:
    ``%v=%q`` of Go (kubernetes/kubernetes, pkg/fieldpath/fieldpath.go, FormatMap). Annotations may also be
    the JSON of a job.

    Raises ``PolicyError``.
    """
    if body.is_body(text):
        return _of_body(text, path, own=own)
    settings, problems = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        source = f"{path}, line {number}"
        found = _LINE.fullmatch(line.strip())
        value = None if found is None else _unquoted(found[2])
        if found is None or (value is None and (own or _is_ours(found[1]))):
            json_too = "" if own else f" (or JSON as {body.EXAMPLE})"
            problems.append(f'{source}: key=value or key="value"{json_too}, not {line.strip()[:80]!r}')
        elif value is not None:
            settings.append(PolicySetting(name=found[1], text=value, source=source, own=own))
    if problems:
        raise PolicyError(problems)
    return tuple(settings)


def _of_body(text: str, path: str, *, own: bool) -> tuple[PolicySetting, ...]:
    if own:
        raise PolicyError([f"{path}: lines KEY=VALUE are needed; give the JSON of a job to --annotations"])
    try:
        found = body.values_in(text)
    except body.BodyError as error:
        raise PolicyError([f"{path}: {error}"]) from error
    return tuple(
        PolicySetting(name=name, text=value, source=f"{path}, {place}") for place, name, value in found
    )


def _unquoted(text: str) -> str | None:
    """The text without Go's quotes and those of its escapes that JSON has: no value of ours holds another."""
    if not text.startswith('"'):
        return text
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _is_ours(name: str) -> bool:
    return (
        name in keys.BY_ANNOTATION
        or name in keys.STRATEGIES
        or name == keys.FAULT_RETRY_TIMES
        or keys.named(name) is not None
    )


class _Reading:
    """The values so far, by field of the policy; later ones replace earlier ones."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.sources: dict[str, PolicySetting] = {}
        self.needs_placements: list[PolicySetting] = []

    # ------------------------------------------------------------------ sources

    def of_own_key(self, setting: PolicySetting) -> None:
        key = keys.named(setting.name)
        if key is None:
            known = ", ".join(keys.BY_NAME)
            self.problems.append(f"{setting.name} ({setting.source}): no such key; the keys are {known}")
        else:
            self._take(key.field, key.form, setting)

    def files(self, settings: tuple[PolicySetting, ...]) -> None:
        """A key that implies others comes first, so that a value for one of those wins."""
        implying = (keys.FAULT_RETRY_TIMES, keys.JOB_RETRY_NUM)
        for name in implying:
            for setting in settings:
                if setting.name == name:
                    self._of_file(setting)
        for setting in settings:
            if setting.name not in implying:
                self._of_file(setting)
        strategies = [each.text for each in settings if each.name in keys.REPORTED]
        if strategies:
            self.values["strategy"] = ",".join(strategies)

    def environment(self, environ: Mapping[str, str]) -> None:
        detect_time = environ.get(keys.HANG_DETECT_TIME)
        if detect_time is not None:
            name = keys.HANG_DETECT_TIME
            setting = PolicySetting(name=name, text=detect_time, source="environment")
            self._take("hang_time_s", keys.HANG_DETECT_FORM, setting)
        for variable, text in environ.items():
            key = keys.BY_VARIABLE.get(variable)
            if key is not None:
                self._take(key.field, key.form, PolicySetting(name=variable, text=text, source="environment"))
            elif variable.startswith(_PREFIX):
                self.notes.append(f"{variable} (environment): no such key of a policy, it is passed over")

    def _of_file(self, setting: PolicySetting) -> None:
        name = setting.name
        if name in keys.BY_ANNOTATION:
            self._of_annotation(setting)
        elif name == keys.FAULT_RETRY_TIMES:
            self._of_fault_retry_times(setting)
        elif name in keys.STRATEGIES:
            self._read(keys.STRATEGIES[name], setting)
        elif setting.own or keys.named(name) is not None:
            self.of_own_key(setting)
        elif name.startswith(_OF_THE_PLATFORM):
            self.notes.append(f"{name} ({setting.source}): not known, it is passed over")

    def _of_annotation(self, setting: PolicySetting) -> None:
        """``job-retry-num`` is "auto restart", which holds in-place recovery: ModelArts, "Recovering a
        Training Job".
        """
        key = keys.BY_ANNOTATION[setting.name]
        value = self._take(key.field, key.annotations[setting.name], setting)
        if value is not None and setting.name == keys.JOB_RETRY_NUM:
            self.values["in_place"] = True
        elif setting.name in keys.NEED_PLACEMENTS and value not in (None, False, HangMode.NOTIFY):
            self.needs_placements.append(setting)

    def _of_fault_retry_times(self, setting: PolicySetting) -> None:
        """MindCluster's unconditional retry; 0: not used."""
        times = self._read(keys.FAULT_RETRY_FORM, setting)
        if times:
            self.values["placements"] = times
            self.values["unconditional"] = True

    # ------------------------------------------------------------------ one value

    def _take(self, field: str, form: ValueForm, setting: PolicySetting) -> Any:
        value = self._read(form, setting)
        if value is not None:
            self.values[field] = value
            self.sources[field] = setting
        return value

    def _read(self, form: ValueForm, setting: PolicySetting) -> Any:
        try:
            return form.read(setting.text.strip())
        except ValueError:
            self.problems.append(f"{setting.name} ({setting.source}): {form.right}, not {setting.text!r}")
            return None

    # ------------------------------------------------------------------ all together

    def limited(self, policy: Policy, limits: Mapping[str, str]) -> Policy:
        for name, text in limits.items():
            wrong = keys.problem(name, text, as_limit=True)
            key = keys.named(name)
            if wrong is not None or key is None or key.form.capped is None:
                self.problems.append(f"the site's [jobs.limits] {wrong}")
                continue
            value = getattr(policy, key.field)
            if value is None:
                continue
            capped = key.form.capped(value, key.form.read(text))
            if capped != value:
                if key.field in self.values:
                    self.notes.append(f"{key.name}: the site's limit is {text}, and holds")
                policy = replace(policy, **{key.field: capped})
        return policy

    def note_strategy(self, policy: Policy) -> None:
        """What is asked for where a chip becomes sub-healthy, and will not be done."""
        strategy, setting = policy.sub_health, self.sources.get("sub_health")
        if setting is None or strategy is SubHealthyStrategy.IGNORE:
            return
        where = f"{setting.name} ({setting.source})"
        if strategy is SubHealthyStrategy.HOT_SWITCH:
            self.notes.append(f"{where}: hotSwitch is reported to schedulers, and the job stays")
        elif policy.placements is None:
            self.notes.append(
                f"{where}: {strategy.value} needs {keys.JOB_RETRY_NUM} (or placements): the job stays"
            )

    def check_together(self, policy: Policy, kill_wait_s: float | None) -> None:
        if policy.placements is None:
            lonely = self.needs_placements
            if not lonely and policy.unconditional and "unconditional" in self.sources:
                lonely = [self.sources["unconditional"]]
            needed = f"needs {keys.JOB_RETRY_NUM} (or placements), a whole number from 1 to 128"
            self.problems += [f"{each.name} ({each.source}): {needed}" for each in lonely]
        grace = self.sources.get("grace_s")
        if grace is not None and kill_wait_s is not None and policy.grace_s >= kill_wait_s:
            self.problems.append(
                f"{grace.name} ({grace.source}): below the {kill_wait_s:g} s after which the scheduler kills "
                f"(KillWait), not {grace.text!r}"
            )


_MAX_BYTES: Final = 1 << 20
_SLURM_CONF: Final = "/etc/slurm/slurm.conf"
_KILL_WAIT: Final = re.compile(r"^\s*KillWait\s*=\s*(\d+)", re.IGNORECASE | re.MULTILINE)
_SHIPPED_KILL_WAIT_S: Final = 30.0
"""slurm.conf(5), KillWait."""


class PolicyFileError(Exception):
    """A file that the user names cannot be read. The message names it and the reason."""


def settle(given: Arguments, environment: Mapping[str, str], welcome: Welcome | None) -> Resolved:
    """``welcome`` None: the daemon does not answer, so there is nothing that the site has set.

    Raises ``Unreadable``, and ``policy.PolicyError``.
    """
    return resolve(
        defaults=welcome.defaults if welcome is not None else {},
        files=(
            *_settings("--annotations", given.annotations_file),
            *_settings("--policy", given.policy_file, own=True),
        ),
        environ=environment,
        flags=given.flags,
        limits=welcome.limits if welcome is not None else {},
        in_step=given.in_step > 0,
        kill_wait_s=kill_wait_s(environment),
    )


def kill_wait_s(environment: Mapping[str, str]) -> float | None:
    """How long Slurm waits between TERM and KILL; None without Slurm, and where its file cannot be read."""
    if "SLURM_JOB_ID" not in environment:
        return None
    try:
        text = _read(environment.get("SLURM_CONF") or _SLURM_CONF)
    except OSError:
        return None
    found = _KILL_WAIT.search(text)
    return _SHIPPED_KILL_WAIT_S if found is None else float(found[1])


def _settings(flag: str, path: str, *, own: bool = False) -> tuple[PolicySetting, ...]:
    """``own``: the file is for us alone, so that a key that is none of ours is misspelt."""
    if not path:
        return ()
    try:
        return read_file(_read(path), path, own=own)
    except OSError as error:
        raise PolicyFileError(f"{flag}: {path}: {error.strerror}") from error


def _read(path: str) -> str:
    return files.read(path, _MAX_BYTES, is_own=False).decode("utf-8", "replace")
