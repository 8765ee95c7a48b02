"""Models, pools, role assignments, change plans, rollouts, endpoints, routers, pool documents."""
