"""The folder of a stage, as for the API's own tests."""

from tests.api.conftest import authority, place, stage

__all__ = ["authority", "place", "stage"]
