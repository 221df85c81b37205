"""When the site last read a project's repository, and why it can't since: nobody knows it of before."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0072_imported_at")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="repository_read_at",
            field=models.DateTimeField(
                blank=True, editable=False, help_text="When its repository was last read.", null=True
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="repository_problem",
            field=models.TextField(
                blank=True, default="", editable=False, help_text="Why it can't be read since then."
            ),
        ),
    ]
