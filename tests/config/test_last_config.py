"""The configuration that the daemon last ran with, at a start at which the file is broken."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from nodeagent.config.config import Config
from nodeagent.config.last import FILE_NAME, Chosen, choose, keep
from nodeagent.config.load import ConfigError, load_config

SOUND = '[agent]\nmode = "graceful"\n'
BROKEN = '[agent]\nmode = "gracefull"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "nodeagent.toml"
    file.write_text(SOUND)
    return file


@pytest.fixture
def service(tmp_path: Path) -> Mapping[str, str]:
    """Its environment; of several folders for state the first is meant."""
    (tmp_path / "state").mkdir()
    return {"STATE_DIRECTORY": f"{tmp_path}/state:{tmp_path}/other"}


def kept(file: Path, service: Mapping[str, str]) -> Config:
    """A life of the daemon with the file as it is."""
    config = load_config(file, service)
    keep(file, service, config)
    return config


def test_a_sound_file_is_taken_as_it_is(file: Path, service: Mapping[str, str]) -> None:
    before = kept(file, service)
    file.write_text("")
    assert choose(file, service).config != before
    assert choose(file, service).refused == ""


@pytest.mark.parametrize("broken", [BROKEN, "[agent\n", None])
def test_in_place_of_a_broken_or_missing_file_the_last_good_one_is_taken(
    file: Path, service: Mapping[str, str], broken: str | None
) -> None:
    before = kept(file, service)
    if broken is None:
        file.unlink()
    else:
        file.write_text(broken)
    chosen = choose(file, service)
    assert chosen.config == before
    assert chosen.refused.startswith(str(file))


def test_where_none_was_ever_good_the_broken_one_is_told(file: Path, service: Mapping[str, str]) -> None:
    file.write_text(BROKEN)
    with pytest.raises(ConfigError, match=r"nodeagent.toml:2: agent.mode: "):
        choose(file, service)


def test_a_copy_that_is_broken_itself_is_none(file: Path, service: Mapping[str, str], tmp_path: Path) -> None:
    kept(file, service)
    file.write_text(BROKEN)
    (tmp_path / "state" / FILE_NAME).write_text("x")
    with pytest.raises(ConfigError, match=r"nodeagent.toml:2"):
        choose(file, service)


def test_a_daemon_that_a_person_starts_keeps_no_copy_and_takes_none(
    file: Path, service: Mapping[str, str], tmp_path: Path
) -> None:
    keep(file, {}, load_config(file, {}))
    assert list((tmp_path / "state").iterdir()) == []
    kept(file, service)
    file.write_text(BROKEN)
    with pytest.raises(ConfigError):
        choose(file, {})


def test_a_file_that_was_changed_meanwhile_is_not_kept(
    file: Path, service: Mapping[str, str], tmp_path: Path
) -> None:
    before = kept(file, service)
    file.write_text('[agent]\nstale_after = "1m"\n')
    config = load_config(file, service)
    for later in (BROKEN, "[agent]\n"):
        file.write_text(later)
        keep(file, service, config)
    assert load_config(tmp_path / "state" / FILE_NAME, {}) == before


def test_without_a_file_the_defaults_are_kept(
    file: Path, service: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodeagent.config.load.DEFAULT_PATH", file.with_name("none.toml"))
    defaults = load_config(None, service)
    keep(None, service, defaults)
    file.write_text(BROKEN)
    assert choose(file, service) == Chosen(config=defaults, refused=choose(file, service).refused)
