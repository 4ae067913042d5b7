"""A directory of one's own: what others have put in its place is neither followed nor changed."""

import os
from pathlib import Path

import pytest

from nodeagent.system.directories import NotOwnError, make_own

NOBODY = 65534


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_it_is_made_with_all_above_it_and_has_its_mode_whatever_it_had(tmp_path: Path) -> None:
    path = tmp_path / "run" / "own"
    make_own(path, 0o700)
    assert mode_of(path) == 0o700
    path.chmod(0o777)
    make_own(path, 0o700)
    assert mode_of(path) == 0o700


@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_symlink_in_its_place_is_not_followed(tmp_path: Path, is_dangling: bool) -> None:
    precious = tmp_path / "precious"
    if not is_dangling:
        precious.mkdir(mode=0o755)
    planted = tmp_path / "own"
    planted.symlink_to(precious)
    with pytest.raises(NotOwnError, match=f"{planted} is no directory; remove it"):
        make_own(planted, 0o700)
    assert precious.exists() is not is_dangling
    assert is_dangling or mode_of(precious) == 0o755


def test_a_file_in_its_place_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("precious")
    with pytest.raises(NotOwnError, match="is no directory"):
        make_own(tmp_path / "own", 0o700)


@pytest.mark.root
def test_another_users_directory_is_refused_as_it_is(tmp_path: Path) -> None:
    planted = tmp_path / "own"
    planted.mkdir(mode=0o755)
    os.chown(planted, NOBODY, NOBODY)
    with pytest.raises(NotOwnError, match="belongs to another user"):
        make_own(planted, 0o700)
    assert mode_of(planted) == 0o755
