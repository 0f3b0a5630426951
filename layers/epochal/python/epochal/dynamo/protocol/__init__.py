"""DynamoDB's JSON protocol without I/O: operations become requests, and answers become replies.

    requests        operations to requests
    expressions     conditions and updates, as requests write them
    conversations   the requests that an operation takes, and the reply to it
    messages        requests to bytes, and bytes to answers
    faults          what an answer means that is no result
    denials         why AWS denies a request, and what to do

Nothing here sends a request: a carrier does.
"""
