"""What was found on nodes, as plain data: no rows, no Django. Services compare it with the plan."""
