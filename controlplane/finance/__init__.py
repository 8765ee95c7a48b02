"""What hardware, roles and tokens cost: the ledger and unit costs."""
