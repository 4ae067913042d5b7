"""Moments as people write them on the command line.

In whose name orders are given where nobody says it: the person, not the account.
"""

import os
import pwd
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from nodeagent.cli.order import owner
from nodeagent.cli.shared.options import moment

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NOW_NS = int(NOW.timestamp()) * 10**9


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.5+01:00", "2026-01-02T02:04:05.500Z"),
        ("2026-01-02T03:04", "2026-01-02T03:04:00Z"),
        ("2026-01-02 03:04", "2026-01-02T03:04:00Z"),
        ("2026-01-02", "2026-01-02T00:00:00Z"),
        ("90m", "2026-01-02T01:34:05Z"),
        ("1d", "2026-01-01T03:04:05Z"),
        ("99999d", "1970-01-01T00:00:00Z"),
    ],
)
def test_a_time_is_in_utc_where_it_names_no_zone_and_a_length_is_ago(text: str, meant: str) -> None:
    assert moment(text, NOW_NS).ToJsonString() == meant


@pytest.mark.parametrize("text", ["", "yesterday", "5", "03:04", "2026-13-01"])
def test_what_is_no_time_is_refused_with_what_is_one(text: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        moment(text, NOW_NS)
    assert refused.value.message == (
        f"{text!r} is not a time: 2026-01-02T03:04:05Z, 2026-01-02, or how long ago: 90m"
    )


NOBODY = pwd.getpwnam("nobody")


@pytest.fixture(autouse=True)
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That of nobody, without sudo."""
    login = tmp_path / "loginuid"
    login.write_text(str(NOBODY.pw_uid))
    monkeypatch.setattr(owner, "LOGIN_UID", login)
    monkeypatch.delenv("SUDO_USER", raising=False)
    return login


def test_behind_sudo_it_is_who_called_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "alice")
    assert owner.person() == "alice"


def test_behind_su_it_is_who_logged_in() -> None:
    assert owner.person() == "nobody"


@pytest.mark.parametrize("login", ["4294967295", "", "none"])
def test_without_a_login_it_is_the_user(session: Path, login: str) -> None:
    session.write_text(login)
    assert owner.person() == pwd.getpwuid(os.getuid()).pw_name


def test_a_kernel_that_knows_no_logins_is_no_failure(session: Path) -> None:
    session.unlink()
    assert owner.person() == pwd.getpwuid(os.getuid()).pw_name


def test_what_is_no_name_for_a_hold_is_left_to_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "uid:0")
    assert owner.person() == ""
