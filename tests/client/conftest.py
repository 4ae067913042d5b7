"""The stage of the API's tests, for those who stand on it as well."""

from tests.api.conftest import place, stage

__all__ = ["place", "stage"]
