"""DynamoDB and S3 through boto3: plans to calls, answers and errors to replies. boto3 lives here and nowhere below."""
