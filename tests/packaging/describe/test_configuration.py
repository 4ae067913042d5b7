"""The configuration of nfpm for one format, as made of the one for all."""

import pytest
import yaml

from describe import configuration

FOR_ALL = """
name: some
contents: []
deb:
  compression: xz
rpm:
  compression: xz
"""


@pytest.mark.parametrize("packager", ["deb", "rpm"])
@pytest.mark.parametrize(("given", "used"), [("", "xz"), ("gzip:1", "gzip:1")])
def test_a_format_has_its_own_compression_unless_another_is_given(
    packager: str, given: str, used: str
) -> None:
    made = yaml.safe_load(configuration.of_format(FOR_ALL, packager, "MIT", "changes", given))

    assert made[packager]["compression"] == used
