"""The command line of the export: what ends it before it sends, and where it finds files and modules."""

import importlib.metadata
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nodeagent.cli.ask import export
from nodeagent.cli.main import main

ROOT = Path(__file__).parents[2]
PINNED = re.compile(r"^([a-z0-9-]+)==", re.MULTILINE)


def nodeagent(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["export", *map(str, words), "--socket", "/nowhere/n.sock"])


def test_a_file_that_cannot_be_used_ends_it_at_once(tmp_path: Path) -> None:
    ended = nodeagent("cloudevents", "http://host", "--secret", tmp_path / "secret")

    assert ended.exit_code == 78
    assert ended.stderr.startswith(f"nodeagent: --secret {tmp_path}/secret: No such file")


def test_a_name_without_a_slash_is_a_credential_of_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("none")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))

    found = nodeagent("cloudevents", "http://host", "--secret", "secret")
    other = nodeagent("cloudevents", "http://host", "--secret", "other")

    assert found.stderr.startswith(f"nodeagent: --secret {tmp_path}/secret: whsec_")
    assert other.stderr.startswith("nodeagent: --secret other: No such file")


def test_without_the_library_of_opentelemetry_it_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "OTLP_MODULES", tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "nodeagent.export.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk._logs", None)

    ended = nodeagent("otlp", "http://host")

    assert ended.exit_code == 1
    assert "install it with pip install 'nodeagent[otlp]'; docs/export.md" in ended.stderr
    assert sys.path[-1] == str(tmp_path)


def test_the_lock_has_what_the_package_lacks_and_no_more() -> None:
    own, packaged = (
        set(PINNED.findall((ROOT / "packaging" / name).read_text())) for name in ("otlp.lock", "runtime.lock")
    )
    needed = {
        re.split(r"[^A-Za-z0-9_.-]", each)[0].replace("_", "-").lower()
        for name in own
        for each in importlib.metadata.requires(name) or ()
        if "extra ==" not in each and "python_version" not in each
    }

    assert own & packaged == set()
    assert needed - own - packaged == set()
    assert "opentelemetry-exporter-otlp-proto-http" in own
