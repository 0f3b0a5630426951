"""Care of the index: status, verification, repair, rebuild, the auditor, what is in quarantine, and the tables."""
