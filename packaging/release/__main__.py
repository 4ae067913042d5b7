"""The command line of ./dev release: ``python -m release ROOT --check``, or ``--key KEY --url URL``."""

import argparse
import datetime
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from release import checks, packages, repository
from release.commands import Refused, run, say
from release.keys import Keys


def main(arguments: Sequence[str]) -> int:
    options = _parse(arguments)
    root: Path = options.root.resolve()
    os.umask(0o022)  # it is served to others
    for cut_off in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(cut_off, _stop)
    try:
        _refuse(checks.problems(root, _today()))
        if options.check:
            say(f"{checks.version_of(root)} can be released")
        else:
            _release(root, options.key, options.url, options.into or root / "dist/repository")
    except Refused as refused:
        print(f"failed: {refused}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("failed: ended from outside; nothing has been released", file=sys.stderr)
        return 1
    return 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev release", description="docs/releasing.md says more.")
    parser.add_argument("root", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true", help="say what stands in the way of a release")
    parser.add_argument(
        "--key", action="append", metavar="KEY",
        help="the OpenPGP key in your key ring that signs; while keys change given twice, the new one first",
    )  # fmt: skip
    parser.add_argument("--url", help="where the folder will be served")
    kept = "the repository; it keeps what it holds (dist/repository)"
    parser.add_argument("--into", type=Path, metavar="FOLDER", help=kept)
    options = parser.parse_args(arguments)
    if not options.check and not (options.key and options.url):
        parser.error("--key and --url are needed; or --check, which needs no key")
    return options


def _release(root: Path, names: Sequence[str], url: str, folder: Path) -> None:
    """All that may be refused beforehand is; the build takes long."""
    url, folder = repository.right_url(url), folder.resolve()
    repository.accept(folder)
    repository.holds(folder, checks.version_of(root), checks.commit_of(root))
    run("git", "-C", root, "var", "GIT_COMMITTER_IDENT")  # whose tag it will be
    keys = Keys.named(names)
    with repository.alone(folder):
        _build_and_publish(root, keys, url, folder)


def _build_and_publish(root: Path, keys: Keys, url: str, folder: Path) -> None:
    version, commit = checks.version_of(root), checks.commit_of(root)
    files: Sequence[Path] = ()
    if repository.holds(folder, version, commit):
        say(f"{folder} holds {version} already: its files stay as they are")
    else:
        files = packages.build(root, version)
        if checks.commit_of(root) != commit:
            raise Refused(f"the commit has changed while {version} was built; right is to run it again")
        _refuse(checks.problems(root, _today()))
    with repository.staged(folder) as staging:
        if files:
            say(f"signing the files of {version}")
            repository.add(staging, files, version, commit, keys)
        say("laying out the repositories for apt and dnf")
        repository.index(staging, keys, url)
        say("verifying every signature")
        repository.verify(staging)
        with repository.replaced(folder, staging):
            _tag(root, version, keys)
    say(f"{version} lies in {folder} and is tagged; nothing was uploaded or pushed (docs/releasing.md)")


def _tag(root: Path, version: str, keys: Keys) -> None:
    tag = checks.tag_of(version)
    if checks.tagged(root, version):
        say(f"the tag {tag} is there")
        return
    say(f"tagging {tag}")
    sign = ("tag", "--sign", f"--local-user={keys.fingerprints[0]}", f"--message=nodeagent {version}")
    run("git", "-C", root, "-c", "gpg.format=openpgp", *sign, tag)


def _refuse(problems: Sequence[str]) -> None:
    if problems:
        raise Refused("\n  ".join(("this cannot be released:", *problems)))


def _stop(_number: int, _frame: FrameType | None) -> None:
    """As Ctrl-C does: what lies half done beside the folder is removed on the way out."""
    raise KeyboardInterrupt


def _today() -> datetime.date:
    return datetime.datetime.now().astimezone().date()  # as whoever writes the changelog sees it


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
