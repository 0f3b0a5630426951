"""Running reactions: as Lambda functions that a queue wakes, and as processes that take turns.

function               is the entry point of a reaction's function
reaction_function      runs a reaction when messages wake its function
wakeups                decides what becomes of each wake-up
wakeup_queue           sends and reads wake-ups
first_wakeups          sends the first wake-ups, when a reaction is deployed
group_wakeups          wakes a group after a command
leases                 holds the messages of a running function, so that what it leaves undone comes again soon
light_sqs              is the client of SQS for functions
commands               performs the commands of operators on parked streams
failed_load            is the function whose reaction cannot be loaded
runner                 runs a reaction in a process of one's own
failure_records        records failed runs
group_summaries        summarizes groups over all partitions

indexer_state          judges whether the indexer works
indexer_failure_notes  records why a process of the indexer failed
crowded_partitions     judges whether indexers rest because a partition is crowded
mapping_states         reads the states of event source mappings

services               sends requests to Lambda and CloudWatch
custom_resource        answers CloudFormation
fixed_settings         refuses a deployment that changes fixed settings
metrics                writes metrics as lines of logs
function_logs          writes the logs of a reaction's function
deadline               logs what a function works on, shortly before it is ended
process_end            notices that Lambda ends a process
"""
