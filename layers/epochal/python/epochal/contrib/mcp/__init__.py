"""An MCP server, by which agents read a store."""
