"""One replica: its batch, its KV blocks, its step times."""
