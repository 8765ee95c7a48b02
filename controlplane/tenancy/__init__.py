"""Organisations, tenants, projects, users, their roles, tokens and inference keys."""
