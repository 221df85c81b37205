import django.contrib.postgres.fields
from django.db import migrations, models

# As ingest stores them: each code once, and the median of the loops before and after each repetition.
FILL = """
UPDATE dashboard_run SET
    warning_codes = ARRAY(
        SELECT code FROM jsonb_array_elements_text(jsonb_path_query_array(body, '$.warnings[*].code'))
            WITH ORDINALITY AS found (code, place)
        GROUP BY code ORDER BY min(place)
    ),
    calibration = (
        SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds::double precision)
        FROM jsonb_array_elements_text(
            jsonb_path_query_array(body, '$.repetitions[*].calibration_before')
            || jsonb_path_query_array(body, '$.repetitions[*].calibration_after')
        ) AS seconds
        WHERE seconds::double precision > 0
    )
FROM dashboard_document
WHERE dashboard_document.run_id = dashboard_run.id
"""


class Migration(migrations.Migration):
    dependencies = [
        ('dashboard', '0033_hosts'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='warning_codes',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), blank=True, default=list, help_text="Of its document's warnings, each once.", size=None),
        ),
        migrations.AddField(
            model_name='run',
            name='calibration',
            field=models.FloatField(blank=True, help_text='Seconds of the calibration loop: the median over its repetitions.', null=True),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop, elidable=True),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['machine', '-claimed_at'], name='run_of_machine'),
        ),
    ]
