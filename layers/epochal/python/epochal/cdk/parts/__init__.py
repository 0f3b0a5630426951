"""Constructs the stacks are made of, usable in a user's own stacks as well.

storage            creates or finds the tables and the bucket
stores             has the tables and the bucket that other parts use
tables             creates tables from their specifications
buckets            creates private buckets

feed               creates the indexer
head_filters       filters the changes of a table that concern heads
notices            publishes which partitions have new entries
failures           creates the bucket of records that functions gave up on
audit              creates the auditor
api                creates the HTTP API
function_urls      gives functions their own URLs
guard              creates the guard of settings that must not change

functions          creates Lambda functions in their common form
function_settings  sets the environment of a stage's functions
layers             fetches the packages of layers
bytecode           adds layers with bytecode
schedules          runs functions on a schedule
grants             derives the permissions of each function from its plans
iam_statements     makes statements of policies
principals         checks grantees

watch              creates alarms and the dashboard
alarms             creates alarms in their common form
dashboard          draws the dashboard
outputs            names the outputs of stacks
resource_names     names the parts of a deployment
limits             checks sizes that AWS limits
"""
