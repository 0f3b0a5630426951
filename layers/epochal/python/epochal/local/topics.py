"""FIFO topics of the embedded AWS, put right after a deployment.

Its CloudFormation makes every topic a standard one, whatever the template says, and what a standard topic delivers to
a FIFO queue belongs to no group. Its SNS knows FIFO topics, and lets a topic be made one.
"""

from __future__ import annotations

from epochal.local.endpoint import Endpoint

SUFFIX = ".fifo"
"""What AWS wants at the end of a FIFO topic's name, and of no other's."""


def make_fifo(endpoint: Endpoint) -> None:
    """Make every topic a FIFO topic that is named as one. Does no harm to those that are."""
    sns = endpoint.client("sns")
    for page in sns.get_paginator("list_topics").paginate():
        for topic in page["Topics"]:
            if topic["TopicArn"].endswith(SUFFIX):
                sns.set_topic_attributes(
                    TopicArn=topic["TopicArn"], AttributeName="FifoTopic", AttributeValue="true"
                )
