"""The messages of the API: the generated code, the words of its enums, and how values become messages."""
