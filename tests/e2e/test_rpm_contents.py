"""What the rpm holds and needs, beside the Debian package that was built with it."""

import hashlib
import re
import stat
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.e2e.rpms import NEEDED, distribution, query

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# Folders of the distribution: dpkg names them with each package, rpm would remove what nobody else names.
OF_THE_DISTRIBUTION = {
    "/", "/etc", "/usr", "/usr/bin", "/usr/lib", "/usr/lib/systemd", "/usr/lib/systemd/system",
    "/usr/lib/systemd/system-preset", "/usr/lib/systemd/catalog",
    "/usr/lib/sysusers.d", "/usr/share", "/usr/share/doc",
    "/usr/share/lintian", "/usr/share/lintian/overrides",
    "/usr/share/man", "/usr/share/man/man1", "/usr/share/man/man5", "/usr/share/man/man8",
}  # fmt: skip
ZSH = ("/usr/share/zsh/vendor-completions", "/usr/share/zsh/site-functions")
"""Where zsh looks for completions: of Debian, and of the distributions with rpm."""

OF_DEBIAN = re.compile(r"^/usr/share/(lintian/overrides/|doc/[\w-]+/(changelog\.gz|LICENSE)$)")

Held = dict[str, tuple[str, str, str]]
"""By path: mode (of a link its kind alone), owner and group, and what a file or link holds."""


def held_by_rpm(package: Path) -> Held:
    found: Held = {}
    form = (
        "[%{FILENAMES}|%{FILEMODES:octal}|%{FILEUSERNAME}:%{FILEGROUPNAME}|%{FILEDIGESTS}|%{FILELINKTOS}\n]"
    )
    for line in query(package, form):
        path, mode, owner, digest, link = line.split("|")
        found[path] = ("link" if link else mode, owner, link or digest)
    return found


def held_by_deb(package: Path) -> Held:
    found: Held = {}
    with (
        subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as unpacked,
        tarfile.open(fileobj=unpacked.stdout, mode="r|") as archive,
    ):
        for member in archive:
            path = "/" + member.name.removeprefix("./").strip("/")
            file = archive.extractfile(member) if member.isfile() else None
            digest = hashlib.sha256(file.read()).hexdigest() if file is not None else ""
            kind = stat.S_IFDIR if member.isdir() else stat.S_IFREG
            mode = "link" if member.issym() else f"{kind | member.mode & 0o7777:o}"
            found[path] = (mode, f"{member.uname}:{member.gname}", member.linkname or digest)
    return found


def without_what_debian_wants(held: Held) -> Held:
    """Its form of a changelog, words for its linter, and no text of a licence that it has itself."""
    return {
        path: each
        for path, each in held.items()
        if path not in OF_THE_DISTRIBUTION and not OF_DEBIAN.search(path)
    }


@pytest.mark.parametrize("architecture", ["", pytest.param("arm64_", marks=pytest.mark.release)])
def test_it_holds_what_the_debian_package_holds(architecture: str, request: pytest.FixtureRequest) -> None:
    deb = held_by_deb(request.getfixturevalue(f"{architecture}package"))
    rpm = held_by_rpm(request.getfixturevalue(f"{architecture}rpm_package"))

    deb = {path.replace(*ZSH): each for path, each in deb.items()}
    assert without_what_debian_wants(deb) == without_what_debian_wants(rpm)


def test_the_emulators_holds_what_its_debian_package_holds(
    emulator_package: Path, rpm_emulator_package: Path
) -> None:
    rpm, deb = held_by_rpm(rpm_emulator_package), held_by_deb(emulator_package)

    assert without_what_debian_wants(deb) == without_what_debian_wants(rpm)


def test_only_the_configuration_is_kept_where_the_site_has_changed_it(rpm_package: Path) -> None:
    flags = query(rpm_package, "[%{FILEFLAGS:fflags} %{FILENAMES}\n]")

    assert [line for line in flags if "c" in line.partition(" ")[0]] == ["cn /etc/nodeagent/nodeagent.toml"]


def test_it_needs_the_libraries_of_the_oldest_distribution_and_nothing_else(
    rpm_package: Path, tmp_path: Path
) -> None:
    older = distribution(tmp_path / "older", *(NEEDED - {"glibc = 2.28"}), "glibc = 2.17")
    right = distribution(tmp_path / "right", *NEEDED)

    refused = try_to_install(tmp_path / "root", older, rpm_package)

    assert [line.strip() for line in refused.splitlines() if "needed" in line] == [
        f"glibc >= 2.28 is needed by nodeagent-{query(rpm_package, '%{VERSION}-%{RELEASE}.%{ARCH}')[0]}"
    ]
    assert try_to_install(tmp_path / "root", right, rpm_package) == ""


def test_the_emulators_needs_the_daemons_of_the_same_version(
    rpm_package: Path, rpm_emulator_package: Path, tmp_path: Path
) -> None:
    right = distribution(tmp_path / "right", *NEEDED)

    refused = try_to_install(tmp_path / "root", right, rpm_emulator_package)

    assert "nodeagent = " in refused
    assert try_to_install(tmp_path / "root", right, rpm_package, rpm_emulator_package) == ""


def try_to_install(root: Path, *packages: Path) -> str:
    """What rpm says against it, "" if nothing."""
    command = ["rpm", "--root", str(root), "--force-debian", "-i", "--test", *map(str, packages)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (done.stderr == ""), done.stderr
    return done.stderr
