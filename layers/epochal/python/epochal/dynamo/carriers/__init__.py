"""What carries requests to DynamoDB and brings their answers."""
