"""Ways to read measurements from the outside: no rows, no rules, every read with a time-out."""
