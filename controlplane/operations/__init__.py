"""Long work with steps, outbox events, leases with fencing tokens."""
