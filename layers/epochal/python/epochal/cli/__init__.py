"""The command line `epochal`: look into a store and write to it, on AWS or on the embedded one.

entry       what the console script calls
main        the command itself: options that say which store, and errors in one line
target      finding the store: named tables, a stack's outputs, or what `epochal local up` deployed
inputs      JSON from arguments, files and standard input; expected versions
views       events, states and pages as JSON and as lines
output      printing either
streams     append, read, state
aggregates  aggregate append, show, events
tagged      tagged append, query, event
tagged_listings   tagged read, tags, tag, count
tagged_import     tagged import
projections projections list, get, put, delete, orphans
feed        feed, tail
react       react; parked list, replay, discard
index       index status, verify, repair
index_rebuild  index rebuild
poison      index poison list, retry, discard
stats       stats
looking     streams, search, trace
watch       watch
prove       prove
completion  completion
local       local up, down, status
"""
