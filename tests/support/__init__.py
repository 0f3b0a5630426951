"""What tests share beside their fixtures."""
