"""Layouts: streams as items and back. Each plans requests and interprets replies; none performs one."""
