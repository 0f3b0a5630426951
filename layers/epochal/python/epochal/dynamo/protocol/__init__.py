"""DynamoDB's JSON protocol, pure: plans to requests, what was answered to replies. Carriers send and receive."""
