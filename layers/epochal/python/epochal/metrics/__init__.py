"""What functions count and time, as CloudWatch reads it from their logs.

    lines       values joined over invocations into one line
    ending      the warning that Lambda gives before it ends an environment, so that no value is lost with it

Nothing is imported here: who runs events without Lambda needs none of it.
"""
