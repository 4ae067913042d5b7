"""The stage of the API's tests, which the export follows."""

from tests.api.conftest import authority, place, stage

__all__ = ["authority", "place", "stage"]
