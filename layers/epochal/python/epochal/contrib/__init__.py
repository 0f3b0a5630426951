"""Optional packages: each can be deleted, together with those that need it."""
