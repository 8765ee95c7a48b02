"""Clusters as their API server shows them: connection, client, names; plain dicts, no rows.

The only package that imports the library `kubernetes`, and only inside functions, since it costs
0.3 s and 44 MB that the web process does not need.
"""
