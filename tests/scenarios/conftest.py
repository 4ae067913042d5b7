"""The option that rewrites the golden output: ``pytest tests/scenarios --update``."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the output in tests/scenarios/*/*.txt")
