"""Plans: what to ask of DynamoDB, what came back, and what it costs, as plain values. No I/O."""
