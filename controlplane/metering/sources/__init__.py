"""Ways to fetch usage from outside: no rows, no rules, every read with a time-out and a bound."""
