"""No module imports itself by way of others: whoever reads one may read what it rests on first.

Every import counts, wherever in a file it stands, so none is hidden inside a function. import-linter's
``acyclic_siblings`` compares packages, and would call a package that two layers of another share a circle.
"""

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest


def circle_of(graph: grimp.ImportGraph) -> list[str]:
    """One circle of modules, each importing the one before it; empty where there is none."""
    imported_by = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imported_by).prepare()
    except CycleError as found:
        return [str(module) for module in found.args[1]]
    return []


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circle_of(grimp.build_graph("nodeagent")) == []


@pytest.mark.parametrize("length", [2, 3])
def test_a_circle_is_found_and_named(length: int) -> None:
    graph = grimp.ImportGraph()
    modules = [f"package.{name}" for name in "abc"[:length]]
    for importer, imported in zip(modules, (*modules[1:], modules[0]), strict=True):
        graph.add_import(importer=importer, imported=imported)

    assert set(circle_of(graph)) == set(modules)
