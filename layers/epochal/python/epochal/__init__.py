"""Epochal: a serverless event store on DynamoDB."""
