import uuid

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Experiments take the place of confirmations; everybody may ask for one, and regressions are linked to theirs."""

    dependencies = [
        ("dashboard", "0018_belong_to_configurations"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RenameField("project", "confirmation_pairs", "experiment_pairs"),
        migrations.RenameField("project", "confirmation_minutes", "experiment_minutes"),
        migrations.RenameField("project", "confirmation_share", "experiment_share"),
        migrations.AlterField(
            model_name="project",
            name="false_alerts_per_100_commits",
            field=models.FloatField(
                default=1.0,
                help_text="Of its alerts, so many may be false, however many series there are.",
                validators=[
                    django.core.validators.MinValueValidator(0.01),
                    django.core.validators.MaxValueValidator(100),
                ],
            ),
        ),
        migrations.CreateModel(
            name="Experiment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("attempt", models.PositiveSmallIntegerField(default=0, help_text="Counted at each claim.")),
                ("lease", models.UUIDField(default=uuid.uuid4)),
                ("lease_until", models.DateTimeField(blank=True, null=True)),
                (
                    "activity",
                    models.CharField(blank=True, help_text="What it is doing, for people.", max_length=200),
                ),
                ("requested_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "purpose",
                    models.CharField(
                        choices=[
                            ("proof", "Proof"),
                            ("bisection", "Bisection"),
                            ("merge", "Merge"),
                            ("person", "Person"),
                            ("script", "Script"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "question",
                    models.CharField(
                        choices=[("test", "Test"), ("place", "Place"), ("estimate", "Estimate")],
                        max_length=20,
                    ),
                ),
                (
                    "phase",
                    models.CharField(
                        blank=True, help_text="Path of the phase; empty: the whole step.", max_length=200
                    ),
                ),
                ("before", models.FloatField(blank=True, null=True)),
                ("after", models.FloatField(blank=True, null=True)),
                (
                    "precision",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.0005),
                            django.core.validators.MaxValueValidator(1),
                        ],
                    ),
                ),
                (
                    "error",
                    models.FloatField(
                        default=0.01, help_text="The chance of a false verdict that it may take."
                    ),
                ),
                ("most_pairs", models.PositiveSmallIntegerField(default=24)),
                ("most_seconds", models.FloatField(default=1200)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("requested", "Requested"),
                            ("measuring", "Measuring"),
                            ("done", "Done"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="requested",
                        max_length=20,
                    ),
                ),
                (
                    "verdict",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("confirmed", "Confirmed"),
                            ("refuted", "Refuted"),
                            ("whole", "Whole"),
                            ("none", "None"),
                            ("part", "Part"),
                            ("estimated", "Estimated"),
                            ("undecided", "Undecided"),
                            ("untestable", "Untestable"),
                        ],
                        max_length=20,
                    ),
                ),
                ("reason", models.JSONField(blank=True, default=dict)),
                (
                    "in_turns",
                    models.BooleanField(
                        default=False,
                        help_text="Both sides' steps alternate; else one process follows the other.",
                    ),
                ),
                ("ratio", models.FloatField(blank=True, null=True)),
                ("low", models.FloatField(blank=True, null=True)),
                ("high", models.FloatField(blank=True, null=True)),
                (
                    "seconds",
                    models.FloatField(default=0, help_text="Spent measuring, all attempts together."),
                ),
                (
                    "commands",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(),
                        blank=True,
                        default=list,
                        help_text="What repeats it.",
                        size=None,
                    ),
                ),
                ("profiles", models.JSONField(blank=True, default=dict)),
                ("measuring_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["requested_at", "pk"],
            },
        ),
        migrations.CreateModel(
            name="ExperimentPair",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("index", models.PositiveSmallIntegerField()),
                (
                    "base_first",
                    models.BooleanField(help_text="Which was measured first, or began, alternates."),
                ),
                ("base", models.FloatField(help_text="The base's value, in the metric's unit.")),
                ("head", models.FloatField()),
                ("disturbed", models.BooleanField(default=False)),
                ("seconds", models.FloatField(help_text="That both took.")),
                ("ratio", models.FloatField(blank=True, null=True)),
                ("low", models.FloatField(blank=True, null=True)),
                ("high", models.FloatField(blank=True, null=True)),
                (
                    "phases",
                    models.JSONField(
                        default=dict,
                        help_text="Own time by phase, in seconds per step: [of the base, of the head].",
                    ),
                ),
                (
                    "sweeps",
                    models.JSONField(
                        default=dict,
                        help_text="Where a metric of a sweep is weighed: parameter, amount, points of base and head.",
                    ),
                ),
                ("measured_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "ordering": ["index"],
            },
        ),
        migrations.CreateModel(
            name="RegressionExperiment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "applied_at",
                    models.DateTimeField(blank=True, help_text="When its verdict was acted upon.", null=True),
                ),
            ],
        ),
        migrations.AddField(
            model_name="experiment",
            name="base_commit",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dashboard.commit"
            ),
        ),
        migrations.AddField(
            model_name="experiment",
            name="base_configuration",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dashboard.configuration"
            ),
        ),
        migrations.AddField(
            model_name="experiment",
            name="head_commit",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dashboard.commit"
            ),
        ),
        migrations.AddField(
            model_name="experiment",
            name="head_configuration",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dashboard.configuration"
            ),
        ),
        migrations.AddField(
            model_name="experiment",
            name="machine",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="dashboard.machine",
            ),
        ),
        migrations.AddField(
            model_name="experiment",
            name="metric",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="+", to="dashboard.metric"
            ),
        ),
        migrations.AddField(
            model_name="experiment",
            name="project",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="experiments",
                to="dashboard.project",
            ),
        ),
        migrations.AddField(
            model_name="experiment",
            name="requested_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="experimentpair",
            name="experiment",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="pairs", to="dashboard.experiment"
            ),
        ),
        migrations.AddField(
            model_name="regressionexperiment",
            name="experiment",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="regression_link",
                to="dashboard.experiment",
            ),
        ),
        migrations.AddField(
            model_name="regressionexperiment",
            name="regression",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="experiment_links",
                to="dashboard.regression",
            ),
        ),
        migrations.AddField(
            model_name="regressionexperiment",
            name="series",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to="dashboard.series"
            ),
        ),
        migrations.AddIndex(
            model_name="experiment",
            index=models.Index(
                condition=models.Q(("state", "requested")), fields=["requested_at"], name="experiment_waiting"
            ),
        ),
        migrations.AddIndex(
            model_name="experiment",
            index=models.Index(fields=["project", "-requested_at"], name="experiment_newest"),
        ),
        migrations.AddConstraint(
            model_name="experimentpair",
            constraint=models.UniqueConstraint(fields=("experiment", "index"), name="experiment_pair_once"),
        ),
        migrations.AddField(
            model_name="regression",
            name="experiments",
            field=models.ManyToManyField(
                blank=True,
                related_name="regressions",
                through="dashboard.RegressionExperiment",
                to="dashboard.experiment",
            ),
        ),
    ]
