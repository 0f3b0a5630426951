"""Access to DynamoDB and S3: plans become requests, and answers and errors become replies.

In the core, only this package and `aio` use botocore.

What programs call:

    stores                                          opens stores on tables, feeds and read models

What these are built of:

    interpreter                                     a deployment on AWS: performs plans through a carrier
    carriers, boto3_carrier                         send requests: without botocore, and through a client of boto3
    clients, lazy_clients                           clients of botocore, created when they are first used
    protocol                                        DynamoDB's JSON protocol without I/O
    wire                                            signatures and HTTP without botocore
    bucket, s3_bodies, s3_objects, s3_links         bodies, objects and signed URLs in S3
    table_kinds                                     checks that a table is of the kind that it is used as
    aws_errors, aws_configuration, loggable_errors  errors of AWS as the library's; what of them may be logged
"""
