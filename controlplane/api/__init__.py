"""REST: root router, problem documents, paging, idempotency, entity tags, schema."""
