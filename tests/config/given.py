"""A configuration of a text, and the file that is shipped."""

from pathlib import Path
from typing import Final

from nodeagent.config.config import Config
from nodeagent.config.load import load_config
from tests.documents import ROOT

SHIPPED: Final = ROOT / "packaging/nodeagent.toml"


def read(tmp_path: Path, text: str) -> Config:
    (tmp_path / "c.toml").write_text(text)
    return load_config(tmp_path / "c.toml", {})
