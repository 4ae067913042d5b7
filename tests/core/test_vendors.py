"""The core names no vendor: what differs between vendors the tables say, or the inputs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

CORE = Path(__file__).parents[2] / "nodeagent/core"
VENDORS = re.compile(r"ascend|huawei|nvidia|dcmi|nvml|\bxid", re.IGNORECASE)


def names_and_texts(source: str) -> Iterator[str]:
    """Every name and text of the code; documentation may give examples."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant() as documentation):
                documentation.value = ""
            case ast.Constant(value=str(text)):
                yield text
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name):
                yield name


def vendors_in(source: str) -> list[str]:
    return [found for found in names_and_texts(source) if VENDORS.search(found)]


def test_the_code_of_the_core_names_no_vendor() -> None:
    found = {path.name: vendors_in(path.read_text()) for path in CORE.rglob("*.py")}

    assert {name: vendors for name, vendors in found.items() if vendors} == {}


def test_a_vendor_is_found_in_the_code_and_not_in_its_documentation() -> None:
    assert vendors_in('"""Of nvidia."""\nif source == "ascend":\n    nvidia_burst()\n') == [
        "ascend",
        "nvidia_burst",
    ]
