"""Requests to AWS without botocore: version 4 signatures, HTTP/1.1, and configuration by environment.

environment  finds a service and credentials by environment variables
signatures   signs requests
http         sends messages over kept-alive connections
batches      sends batches of messages, with retries
sns          publishes messages to SNS
sqs          sends messages to SQS, and delays received ones
"""
