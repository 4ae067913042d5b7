"""Folders of tables for the stories."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nodeagent.core.catalog.settings import Settings
from nodeagent.tables.load import Loaded, TablesError, load_catalog

Load = Callable[..., Loaded]
Refusals = Callable[[str], list[str]]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads layers, each a mapping of file name to text, from folders named 1, 2, ..."""

    def load_layers(*layers: dict[str, str]) -> Loaded:
        folders = []
        for position, layer in enumerate(layers, start=1):
            folder = tmp_path / str(position)
            folder.mkdir()
            for name, text in layer.items():
                (folder / name).write_text(text)
            folders.append(folder)
        return load_catalog(folders, Settings())

    return load_layers


@pytest.fixture
def refusals(load: Load, tmp_path: Path) -> Refusals:
    """What is said of a single table file, without the folder's name."""

    def refusals_of(text: str) -> list[str]:
        with pytest.raises(TablesError) as refused:
            load({"t.toml": text})
        return str(refused.value).replace(f"{tmp_path}/1/", "").splitlines()

    return refusals_of
