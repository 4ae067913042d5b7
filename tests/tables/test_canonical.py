"""A catalog as bytes and back, and its digest."""

import hashlib
import json
from pathlib import Path

import pytest

from nodeagent.core.catalog.catalog import Catalog
from nodeagent.core.catalog.settings import Mode, Settings
from nodeagent.tables.canonical import decode_catalog, encode_catalog
from nodeagent.tables.load import load_catalog

REPOSITORY = Path(__file__).parents[2]

EVERY_RULE = """
[codes.A1]
kind = "chip"
name = "a"
level = "RestartNPU"
clear_on = ["recover", "10m"]
[codes.B1]
kind = "host"
name = "b"
level = "PreSeparateFault"
[[frequency]]
id = "f"
codes = ["A1"]
times = 2
time_window = "1d"
level = "PreSeparateNPU"
release_time_window = "2d"
at_least = "SubHealthFault"
[[duration]]
id = "d"
codes = ["A1"]
fault_timeout = "20s"
recover_timeout = "60s"
level = "PreSeparateNPU"
[[threshold]]
id = "t"
code = "A1"
metric = "temperature_celsius"
above = 90
clear_below = 85.5
for = "60s"
[[counter]]
id = "c"
code = "A1"
metric = "ecc_corrected_total.*"
increase = 1000
time_window = "24h"
lifetime = true
[[common_cause]]
id = "cc"
code = "B1"
codes = ["A1", "A2*"]
devices = 4
within = "10m"
[[relation]]
id = "r"
code = "A1"
with = ["A*"]
within = "3m"
same = "job"
then = "level"
level = "SeparateNPU"
[[pattern]]
id = "p"
code = "A{n}"
continuation = true
regex = '''^\\bx(?P<n>1) "quoted" ä$'''
device = "n"
"""


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    (tmp_path / "t.toml").write_text(EVERY_RULE)
    return load_catalog([tmp_path], Settings()).catalog


def test_a_catalog_with_every_sort_of_rule_comes_back_equal(catalog: Catalog) -> None:
    assert decode_catalog(encode_catalog(catalog)) == catalog


def test_the_same_tables_have_the_same_bytes_and_digest_each_time() -> None:
    first, second = (load_catalog([REPOSITORY / "fault_codes"], Settings()).catalog for _ in range(2))
    assert encode_catalog(first) == encode_catalog(second)
    assert len(first.digest) == 64


def test_a_setting_that_changes_a_decision_changes_the_digest(catalog: Catalog, tmp_path: Path) -> None:
    graceful = load_catalog([tmp_path], Settings(mode=Mode.GRACEFUL)).catalog
    assert graceful.rows == catalog.rows
    assert graceful.digest != catalog.digest


def test_damaged_bytes_are_refused(catalog: Catalog) -> None:
    damaged = encode_catalog(catalog).replace(b'"times":2', b'"times":3')
    with pytest.raises(ValueError, match="damaged since it was written"):
        decode_catalog(damaged)


def test_bytes_that_are_no_catalog_are_refused() -> None:
    with pytest.raises(ValueError, match="not a catalog"):
        decode_catalog(b'{"digest": 1}')


def test_a_catalog_written_before_its_forms_had_more_fields_is_still_read() -> None:
    catalog = load_catalog([REPOSITORY / "fault_codes"], Settings()).catalog
    older = json.loads(encode_catalog(catalog))
    for row in older["rows"].values():
        del row["affects"]
    older["digest"] = ""
    bare = json.dumps(older, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    older["digest"] = hashlib.sha256(bare).hexdigest()
    written = json.dumps(older, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert decode_catalog(written).digest == older["digest"]
