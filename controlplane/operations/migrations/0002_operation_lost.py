from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("operations", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="operation",
            name="lost",
            field=models.PositiveIntegerField(default=0),
        ),
    ]
