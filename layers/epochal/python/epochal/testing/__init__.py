"""For users' own tests, and ours: DynamoDB in memory, and what makes it misbehave on purpose."""
