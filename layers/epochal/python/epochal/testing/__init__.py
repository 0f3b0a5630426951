"""For users' own tests, and for ours: DynamoDB in memory, and faults that make it misbehave on purpose."""
