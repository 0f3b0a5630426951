"""For users' own tests, and for ours: DynamoDB in memory, and faults that make it misbehave on purpose.

stores     whole stores in memory
feeds      a deployment in memory with its feed and timers, whose time a test advances
scenarios  decisions by example: given events, when a command, then events
memory     tables in memory, and schedules of faults
refusals   refuses what DynamoDB refuses as malformed
"""
