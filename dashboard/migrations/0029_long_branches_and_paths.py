from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("dashboard", "0028_large_measured_numbers")]

    operations = [
        migrations.AlterField(
            model_name="project",
            name="repository",
            field=models.CharField(help_text="Path or URL that git can fetch from.", max_length=4096),
        ),
        migrations.AlterField(
            model_name="project", name="branch", field=models.CharField(default="main", max_length=500)
        ),
        migrations.AlterField(
            model_name="commit", name="branch", field=models.CharField(max_length=500)
        ),
        migrations.AlterField(
            model_name="commit",
            name="left_branch",
            field=models.CharField(
                blank=True,
                help_text="The branch that held it until its history was rewritten.",
                max_length=500,
            ),
        ),
    ]
