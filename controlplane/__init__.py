"""Everything that knows tenants, money and desired state."""
