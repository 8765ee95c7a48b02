"""Entries and links are never changed or deleted, by whoever it may be: a trigger refuses it."""

from django.db import migrations

REFUSE = """
    CREATE FUNCTION audit_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'The audit log is insert only: % of % refused.', TG_OP, TG_TABLE_NAME
              USING ERRCODE = 'integrity_constraint_violation';
    END $$;
    CREATE TRIGGER audit_entry_insert_only BEFORE UPDATE OR DELETE ON audit_auditentry
        FOR EACH ROW EXECUTE FUNCTION audit_refuse_change();
    CREATE TRIGGER audit_link_insert_only BEFORE UPDATE OR DELETE ON audit_auditlink
        FOR EACH ROW EXECUTE FUNCTION audit_refuse_change();
"""
ALLOW = """
    DROP TRIGGER audit_entry_insert_only ON audit_auditentry;
    DROP TRIGGER audit_link_insert_only ON audit_auditlink;
    DROP FUNCTION audit_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]
    operations = [migrations.RunSQL(REFUSE, ALLOW)]
