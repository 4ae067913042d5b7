"""What tables say of sources, and what those mean that say nothing."""

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from nodeagent.core.catalog.catalog import Catalog, OnceHold, SourceTraits
from nodeagent.tables.canonical import decode_catalog, encode_catalog, with_digest
from nodeagent.tables.load import Loaded, TablesError
from nodeagent.tables.sections.sources import DEFAULT_TRAITS
from tests.shipped import shipped_catalog

Load = Callable[..., Loaded]

REPOSITORY = Path(__file__).parents[2]
ROW = '[codes.A1]\nkind = "chip"\nname = "a"\nlevel = "SubHealthFault"\n'


def test_the_shipped_tables_say_of_each_source_what_older_tables_mean() -> None:
    shipped = shipped_catalog().sources

    assert {name: shipped[name] for name in DEFAULT_TRAITS} == DEFAULT_TRAITS


def test_a_bmc_that_logs_nothing_further_says_nothing_of_a_recovery() -> None:
    shipped = shipped_catalog().sources

    assert shipped["bmc"] == SourceTraits(once_hold=OnceHold.NO_ROW)


def test_what_the_node_shows_and_the_kernel_log_tells_is_one_occurrence() -> None:
    shipped = shipped_catalog().sources

    assert shipped["host"] == shipped["kmsg"]


def test_tables_that_name_no_source_leave_all_as_it_was(load: Load) -> None:
    assert load({"a.toml": ROW}).catalog.sources == DEFAULT_TRAITS


def test_a_later_folder_says_all_of_a_source_anew_and_leaves_the_others(load: Load) -> None:
    first = '[sources.amd]\nburst = "3m"\ngraded = true\n'
    later = '[sources.amd]\nonce_hold = "always"\n[sources.kmsg]\nburst = "1s"\n'

    assert load({"a.toml": ROW + first}, {"a.toml": later}).catalog.sources == {
        **DEFAULT_TRAITS,
        "amd": SourceTraits(once_hold=OnceHold.ALWAYS),
        "kmsg": SourceTraits(burst_ns=1_000_000_000),
    }


def test_a_stored_catalog_older_than_these_words_means_what_it_meant() -> None:
    words = json.loads(encode_catalog(Catalog(digest="")))
    del words["sources"]
    written = json.dumps(words, sort_keys=True, separators=(",", ":"))
    digest = sha256(written.encode()).hexdigest()

    stored = decode_catalog(written.replace('"digest":""', f'"digest":"{digest}"').encode())

    assert stored == Catalog(digest=digest, sources=DEFAULT_TRAITS)


def test_what_a_catalog_says_of_sources_is_part_of_its_digest() -> None:
    said = with_digest(Catalog(digest="", sources=DEFAULT_TRAITS))

    assert with_digest(replace(said, sources={})).digest != said.digest


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("sources = 1\n", "t.toml:1: sources: 1 is given where tables such as [sources.kmsg] are needed"),
        (
            "[sources.amd]\nbrust = '3m'\n",
            't.toml:2: sources.amd.brust: unknown key; the nearest known is "burst"',
        ),
        (
            "[sources.amd]\nonce_hold = 'never'\n",
            't.toml:2: sources.amd.once_hold: "never": must be one of always, no_quiet_time, no_row',
        ),
        (
            "[sources.amd]\nnetwork_parts = ['83']\n",
            "t.toml:2: sources.amd.network_parts: ['83']: must be a list of parts, each three hexadecimal",
        ),
    ],
)
def test_a_wrong_word_of_a_source_is_refused_where_it_stands(load: Load, table: str, reason: str) -> None:
    with pytest.raises(TablesError) as refused:
        load({"t.toml": table + ROW})

    assert reason in str(refused.value)
