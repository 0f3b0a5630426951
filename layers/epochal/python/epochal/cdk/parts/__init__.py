"""Constructs the stacks are made of, usable in a user's own stacks as well."""
