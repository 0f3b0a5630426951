"""Forgetting a person: bodies sealed under keys of their subjects, and the keys destroyed."""
