"""What events look like, said to others: JSON Schemas of a codec's types, columns for tables, an AsyncAPI document."""
