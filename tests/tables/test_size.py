"""Tables too large for the daemon's memory are refused with the limit, and with the file to look at."""

from pathlib import Path

import pytest

from nodeagent.core.catalog.settings import Settings
from nodeagent.tables.load import TablesError, load_catalog
from nodeagent.tables.size import MAX_BYTES, MAX_CODES, MAX_PATTERNS, MAX_PATTERNS_BYTES, MAX_RULES
from nodeagent.toml.source import FILE_LIMIT_BYTES

ROW = '[codes.{code:X}]\nname = "x"\nlevel = "NotHandleFault"\n'
HEAD = 'kind = "chip"\n' + ROW.format(code=0xA1)
RULE = (
    '[[frequency]]\nid = "r{number}"\ncodes = ["A1"]\ntimes = 3\ntime_window = "1h"\n'
    'level = "ManuallySeparateNPU"\n'
)
PATTERN = '[[pattern]]\nid = "p{number}"\ncode = "A1"\ndevice = "node"\nregex = "{regex}"\n'


def load(folder: Path, **files: str) -> list[str]:
    """What is wrong with these files, a line each."""
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text)
    try:
        load_catalog([folder], Settings())
    except TablesError as refused:
        return str(refused).splitlines()
    return []


def rows(begin: int, count: int) -> str:
    return 'kind = "chip"\n' + "".join(
        ROW.format(code=0xA00000 + number) for number in range(begin, begin + count)
    )


def test_as_many_codes_as_are_taken(tmp_path: Path) -> None:
    assert load(tmp_path, a=rows(0, MAX_CODES)) == []


def test_one_code_more(tmp_path: Path) -> None:
    said = f"the tables have {MAX_CODES + 1} codes together, {MAX_CODES - 9} of them here"
    assert load(tmp_path, a=rows(0, 10), b=rows(10, MAX_CODES - 9)) == [
        f"{tmp_path}/b.toml: {said}; at most {MAX_CODES} are taken"
    ]


def test_one_rule_more(tmp_path: Path) -> None:
    rules = "".join(RULE.format(number=number) for number in range(MAX_RULES + 1))
    said = f"the tables have {MAX_RULES + 1} rules together, {MAX_RULES + 1} of them here"
    assert load(tmp_path, a=HEAD + rules) == [f"{tmp_path}/a.toml: {said}; at most {MAX_RULES} are taken"]


def test_one_pattern_more(tmp_path: Path) -> None:
    patterns = "".join(
        PATTERN.format(number=number, regex="^a driver says a fault") for number in range(MAX_PATTERNS + 1)
    )
    said = f"the tables have {MAX_PATTERNS + 1} patterns together, {MAX_PATTERNS + 1} of them here"
    assert load(tmp_path, a=HEAD + patterns) == [
        f"{tmp_path}/a.toml: {said}; at most {MAX_PATTERNS} are taken"
    ]


def test_patterns_that_no_worker_could_be_told_of_in_one_line(tmp_path: Path) -> None:
    """In JSON each such character takes six bytes."""
    patterns = "".join(PATTERN.format(number=number, regex="^" + "\\u0001" * 1800) for number in range(100))
    (problem,) = load(tmp_path, a=HEAD + patterns)
    assert problem.startswith(f"{tmp_path}/a.toml: the tables have 1")
    assert problem.endswith(
        f" bytes of patterns together, most of them here; at most {MAX_PATTERNS_BYTES} are taken"
    )


def test_files_that_are_too_large_together(tmp_path: Path) -> None:
    files = {"a": HEAD + " " * (FILE_LIMIT_BYTES - 1000), "b": " " * (FILE_LIMIT_BYTES - 10), "c": ""}
    (problem,) = load(tmp_path, **files)
    total = sum(map(len, files.values()))
    said = f"the tables have {total} bytes together, {FILE_LIMIT_BYTES - 10} of them here"
    assert problem == f"{tmp_path}/b.toml: {said}; at most {MAX_BYTES} are read"


def test_a_file_that_is_too_large_by_itself(tmp_path: Path) -> None:
    assert load(tmp_path, a=" " * (FILE_LIMIT_BYTES + 1)) == [f"{tmp_path}/a.toml: larger than 2 MiB"]


@pytest.mark.parametrize("folder", ["fault_codes", "tests/fixtures/mindcluster"])
def test_what_is_shipped_is_far_from_the_limits(folder: str) -> None:
    files = (Path(__file__).parents[2] / folder).iterdir()
    assert sum(file.stat().st_size for file in files) < MAX_BYTES / 3
