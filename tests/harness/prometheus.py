"""A real Prometheus and a real Alertmanager on loopback, and what a receiver of alerts gets.

Prometheus scrapes and evaluates each second. Rules are taken as they are, or with each ``for`` made a second:
then an alert needs no minutes to fire.
"""

import json
import re
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import yaml

from tests.harness.daemon import free_port
from tests.waiting import WAIT_LIMIT_S, wait_until

JOB: Final = "nodeagent"
_FOR: Final = re.compile(r"^( +for: )\S+$", re.MULTILINE)

Sample = Mapping[str, Any]
"""``metric`` (the labels) and ``value`` (time and text)."""


@dataclass(frozen=True)
class Prometheus:
    """One that runs at this port of loopback."""

    port: int

    def query(self, expression: str) -> Sequence[Sample]:
        """The samples of now. Raises ``AssertionError`` with Prometheus' reason if it refuses."""
        return self._get("query", query=expression)["result"]  # type: ignore[no-any-return]

    def firing(self) -> Mapping[str, Sequence[Mapping[str, str]]]:
        """Alerts that fire: by name the labels of each."""
        found: dict[str, list[Mapping[str, str]]] = {}
        for alert in self._get("alerts")["alerts"]:
            if alert["state"] == "firing":
                found.setdefault(alert["labels"]["alertname"], []).append(alert["labels"])
        return found

    def broken_rules(self) -> Mapping[str, str]:
        """Rules that could not be evaluated: by name the error."""
        groups = self._get("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return {rule["name"]: rule["lastError"] for rule in rules if rule.get("lastError")}

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError):
            return False

    def _get(self, path: str, **parameters: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=WAIT_LIMIT_S) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refused:
            raise AssertionError(f"{parameters}: {json.load(refused)['error']}") from refused


@contextmanager
def prometheus(
    folder: Path,
    targets: Sequence[str],
    rules: Path,
    *,
    at_once: bool = True,
    alertmanager: int | None = None,
) -> Iterator[Prometheus]:
    """``at_once``: each ``for`` of the rules is a second. ``alertmanager`` is the port of one."""
    folder.mkdir(parents=True, exist_ok=True)
    text = rules.read_text(encoding="utf-8")
    (folder / "rules.yml").write_text(_FOR.sub(r"\g<1>1s", text) if at_once else text)
    managers = [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager}"]}]}] if alertmanager else []
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(folder / "rules.yml")],
        "alerting": {"alertmanagers": managers},
        "scrape_configs": [{"job_name": JOB, "static_configs": [{"targets": list(targets)}]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    port = free_port()
    arguments = [
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with _running(["prometheus", *arguments], folder / "prometheus.log"):
        running = Prometheus(port)
        wait_until(running.is_ready, "Prometheus is ready", each_s=0.1)
        yield running


@dataclass(frozen=True)
class ReceivedAlert:
    """``state`` is ``firing`` or ``resolved``."""

    state: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


@dataclass
class Received:
    """What the Alertmanager at this port has sent."""

    port: int
    alerts: list[ReceivedAlert] = field(default_factory=list)

    def names(self, state: str) -> set[str]:
        return {alert.labels["alertname"] for alert in tuple(self.alerts) if alert.state == state}


@contextmanager
def alertmanager(folder: Path) -> Iterator[Received]:
    """It waits for a second before it sends a group, and sends at once what is resolved."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    received = Received(port)

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            for alert in body["alerts"]:
                received.alerts.append(ReceivedAlert(alert["status"], alert["labels"], alert["annotations"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 # http.server's name
            """Not to the terminal."""

    hook = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{hook.server_port}/"
    configuration = {
        "route": {"receiver": "hook", "group_wait": "1s", "group_interval": "1s", "group_by": ["alertname"]},
        "receivers": [{"name": "hook", "webhook_configs": [{"url": url}]}],
    }
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(configuration))
    arguments = [
        f"--config.file={folder / 'alertmanager.yml'}",
        f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    try:
        with _running(["prometheus-alertmanager", *arguments], folder / "alertmanager.log"):
            wait_until(Prometheus(port).is_ready, "Alertmanager is ready", each_s=0.1)
            yield received
    finally:
        hook.shutdown()
        hook.server_close()


@contextmanager
def _running(command: Sequence[str], log: Path) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=WAIT_LIMIT_S)
