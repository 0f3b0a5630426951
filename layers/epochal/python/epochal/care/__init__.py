"""Care of the index: status, verification, repair, rebuild, the auditor, and what is in quarantine."""
