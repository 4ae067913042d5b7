"""The forms that read the configuration and the tables, under the titles that a reference has for them."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from nodeagent.config.load import SECTIONS
from nodeagent.config.public import PublicConfig
from nodeagent.tables.rule_kinds import RULE_SECTIONS
from nodeagent.tables.sections.schema import FileForm, RowForm
from nodeagent.vendors import DRIVERS

OF_CONFIGURATION: Final[Mapping[str, type[Struct]]] = {
    **SECTIONS,
    "public": PublicConfig,
    **{f"drivers.{name}": traits.section for name, traits in DRIVERS.items()},
}
"""By the name of the section."""

OF_TABLES: Final[Mapping[str, type[Struct]]] = {
    "At the head of a file": FileForm,
    "[codes.CODE]": RowForm,
    **{f"[[{key}]]": kind.form for key, kind in RULE_SECTIONS.items()},
}
