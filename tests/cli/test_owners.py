"""In whose name orders are given where nobody says it: the person, not the account."""

import os
import pwd
from pathlib import Path

import pytest

from nodeagent.cli.shared import options

NOBODY = pwd.getpwnam("nobody")


@pytest.fixture(autouse=True)
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That of nobody, without sudo."""
    login = tmp_path / "loginuid"
    login.write_text(str(NOBODY.pw_uid))
    monkeypatch.setattr(options, "LOGIN_UID", login)
    monkeypatch.delenv("SUDO_USER", raising=False)
    return login


def test_behind_sudo_it_is_who_called_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "alice")
    assert options.person() == "alice"


def test_behind_su_it_is_who_logged_in() -> None:
    assert options.person() == "nobody"


@pytest.mark.parametrize("login", ["4294967295", "", "none"])
def test_without_a_login_it_is_the_user(session: Path, login: str) -> None:
    session.write_text(login)
    assert options.person() == pwd.getpwuid(os.getuid()).pw_name


def test_a_kernel_that_knows_no_logins_is_no_failure(session: Path) -> None:
    session.unlink()
    assert options.person() == pwd.getpwuid(os.getuid()).pw_name


def test_what_is_no_name_for_a_hold_is_left_to_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "uid:0")
    assert options.person() == ""
