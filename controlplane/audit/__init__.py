"""Who did what to which object, why, allowed or denied: append-only."""
