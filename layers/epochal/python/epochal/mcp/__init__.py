"""A store for agents: an MCP server that reads, and cannot write."""
