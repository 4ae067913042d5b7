"""What the package installs beside the daemon, at the places where a system looks for it."""

from pathlib import Path

import pytest

from tests.documents import ROOT
from tests.installed import contents

COMPLETION = ROOT / "packaging/completion"


@pytest.mark.parametrize(
    ("packager", "zsh"),
    [
        ("deb", "/usr/share/zsh/vendor-completions/_nodeagent"),
        ("rpm", "/usr/share/zsh/site-functions/_nodeagent"),
    ],
)
def test_each_shell_finds_its_completion(packager: str, zsh: str) -> None:
    placed = {str(place): source for place, source in contents(packager) if "ompletion" in str(source)}

    assert placed == {
        "/usr/share/bash-completion/completions/nodeagent": COMPLETION / "nodeagent.bash",
        zsh: COMPLETION / "_nodeagent",
        "/usr/share/fish/vendor_completions.d/nodeagent.fish": COMPLETION / "nodeagent.fish",
    }


@pytest.mark.parametrize("packager", ["deb", "rpm"])
def test_folders_for_what_a_site_adds_are_there(packager: str) -> None:
    folders = {place for place, source in contents(packager) if source is None}

    assert {Path("/etc/nodeagent", name) for name in ("nodeagent.d", "fault_codes")} <= folders
