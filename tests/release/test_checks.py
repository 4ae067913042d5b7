"""What stands in the way of a release, as `./dev release --check` tells it: each refusal by its words."""

from collections.abc import Callable

import pytest

from tests.release.checkout import Checkout

Change = Callable[[Checkout], object]
FIRST = "failed: this cannot be released:\n  "


def edited(place: str, before: str, after: str) -> Change:
    def change(checkout: Checkout) -> None:
        checkout.replace(place, before, after)
        checkout.commit()

    return change


def test_a_clean_commit_with_its_changelog_can_be_released(checkout: Checkout) -> None:
    done = checkout.release("--check")

    assert (done.returncode, done.stderr) == (0, "==> 1.2.0 can be released\n")


def test_so_it_can_after_its_tag_was_made(checkout: Checkout) -> None:
    checkout.git("tag", "v1.2.0")

    assert checkout.release("--check").returncode == 0


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (
            lambda checkout: checkout.write("new.py", ""),
            f"{FIRST}not committed: new.py; right is a tree of which git status says that it is clean",
        ),
        (
            lambda checkout: checkout.replace("pyproject.toml", "]", "]  # all of them"),
            f"{FIRST}not committed: pyproject.toml; right is",
        ),
        (
            edited("pyproject.toml", "1.2.0", "1.1.0"),
            (f"{FIRST}pyproject.toml:2: nodeagent-client is pinned to 1.1.0; right is 1.2.0, "
            "as in nodeagent/__init__.py"),
        ),
        (
            edited("pyproject.toml", "==1.2.0", ">=1"),
            f"{FIRST}pyproject.toml: nodeagent-client is not pinned; right is 'nodeagent-client==1.2.0'",
        ),
        (
            edited("CHANGELOG.md", "## 1.2.0, 2026-11-20", "## Unreleased"),
            f"{FIRST}CHANGELOG.md:3: changes stand under Unreleased, in line 5; right is the heading ",
        ),
        (
            edited("nodeagent/api/interface.py", "MINOR: Final = 4", "MINOR: Final = 5"),
            (f"{FIRST}proto/kept/1.5.binpb is missing, and nodeagent/api/interface.py has that version; "
            "right is to keep it: .venv/buf/bin/buf build proto --exclude-source-info "
            "--as-file-descriptor-set -o proto/kept/1.5.binpb"),
        ),
        (
            edited("nodeagent/__init__.py", "1.2.0", "1.2.0rc1"),
            ("failed: nodeagent/__init__.py:1: '1.2.0rc1' is no version that can be released; "
            "right are three numbers, such as 0.2.0"),
        ),
        (
            edited("nodeagent/__init__.py", "__version__", "version"),
            "failed: nodeagent/__init__.py: there is no line '__version__ = \"0.2.0\"'",
        ),
    ],
    ids=[
        "a new file", "a changed file", "another version", "no pin", "unreleased changes",
        "interface not kept", "no final version", "no version",
    ],
)  # fmt: skip
def test_what_is_in_the_way_is_told(checkout: Checkout, change: Change, refusal: str) -> None:
    change(checkout)

    done = checkout.release("--check")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(refusal)


def test_the_tag_of_another_commit_is_told(checkout: Checkout) -> None:
    tagged = checkout.git("rev-parse", "--short=12", "HEAD")
    checkout.git("tag", "--annotate", "--message", "before", "v1.2.0")
    checkout.write("more", "")
    own = checkout.commit()

    assert checkout.release("--check").stderr == (
        f"{FIRST}the tag v1.2.0 is of commit {tagged}, and this one is {own[:12]}; "
        "right is a higher version in nodeagent/__init__.py\n"
    )


def test_all_of_it_is_told_at_once(checkout: Checkout) -> None:
    edited("nodeagent/__init__.py", "1.2.0", "1.3.0")(checkout)
    for number in range(7):
        checkout.write(f"new{number}", "")

    lines = checkout.release("--check").stderr.splitlines()

    assert [line.split(";")[0] for line in lines[1:]] == [
        "  not committed: new0, new1, new2, new3, new4 and 2 more",
        "  pyproject.toml:2: nodeagent-client is pinned to 1.2.0",
        "  CHANGELOG.md: there is no section of 1.3.0",
    ]


def test_a_release_without_a_key_or_a_place_is_refused(checkout: Checkout) -> None:
    done = checkout.release("--key", "somebody")

    assert done.returncode == 2
    assert "--key and --url are needed; or --check, which needs no key" in done.stderr
