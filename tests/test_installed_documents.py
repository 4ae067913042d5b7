"""The documents as the package installs them: each link of theirs leads to a file there too."""

from pathlib import Path

import pytest

from tests.documents import DOCUMENTS, PROSE_LINK, ROOT, prose
from tests.installed import lay_out

INSTALLED = "usr/share/doc/nodeagent"


@pytest.mark.parametrize("packager", ["deb", "rpm"])
def test_every_link_of_an_installed_document_leads_to_a_file_of_the_package(
    tmp_path: Path, packager: str
) -> None:
    lay_out(tmp_path, packager)
    if packager == "deb":  # base-files has it, which each Debian has
        common = tmp_path / "usr/share/common-licenses"
        common.mkdir()
        (common / "Apache-2.0").symlink_to(ROOT / "LICENSE")
    folder = tmp_path / INSTALLED
    documents = sorted(folder.rglob("*.md"))
    links = {
        (document, link)
        for document in documents
        for link in (found.partition("#")[0] for found in PROSE_LINK.findall(prose(document)))
        if link and not link.startswith("https://")
    }

    assert [str(each.relative_to(folder)) for each in documents] == sorted(
        str(each.relative_to(ROOT)) for each in DOCUMENTS
    )
    assert (folder / "README.md", "LICENSE") in links
    assert [
        f"{document.relative_to(folder)}: {link}"
        for document, link in sorted(links)
        if not (document.parent / link).exists()
    ] == []
