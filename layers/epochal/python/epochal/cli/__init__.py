"""The command line `epochal`: look into a store and write to it, on AWS or on the embedded one.

entry       what the console script calls
main        the command itself: options that say which store, and errors in one line; completion, console
target      finding the store: named tables, a stack's outputs, or what `epochal local up` deployed
inputs      JSON from arguments, files and standard input; expected versions
views       events, states and pages as JSON and as lines
output      printing either
index       index status, verify, repair, rebuild; index poison list, retry, discard
feed        feed, tail, streams, search, trace, watch
react       react; parked list, replay, discard

What else there is, is called as its commands are: streams, tagged, projections, stats, copying, prove, local, new.
"""
