"""The engine host: starts and ends engine processes of this machine, driven over loopback.

No Django here. Engines run in sessions of their own and outlive the host; a restarted host finds
them again by process id, start time and a mark in their environment.
"""
