"""Access to DynamoDB and S3: plans become requests, and answers and errors become replies.

Only this package uses botocore.
"""
