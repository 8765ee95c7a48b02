"""The composition root: settings, Celery, schedule, addresses. Imported by nobody."""
