"""Sites, clusters, nodes and accelerators: what was meant beside what was found."""
