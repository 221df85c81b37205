from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from dashboard.models.configurations import Configuration
from dashboard.models.leases import LeasedJob, is_overdue
from dashboard.models.machines import Machine
from dashboard.models.measured_json import MeasuredJsonDecoder
from dashboard.models.projects import Commit, Project
from dashboard.models.series import Metric
from dashboard.page_addresses import page_address


class Experiment(LeasedJob):
    """An interleaved, paired measurement of two sides on one machine, decided by a test that is valid at
    every look.

    A side is a commit with a configuration; the sides differ in the commit (a comparison) or in the
    parameters (a toggle). docs/method/experiments.md draws its states.
    """

    class Purpose(models.TextChoices):
        # A regression's proof, a step of its bisection, a commit of a merged branch against its merge base.
        PROOF = "proof"
        BISECTION = "bisection"
        MERGE = "merge"
        # Of a pull request's head against its merge base, and of the merge base against itself.
        CHECK = "check"
        PERSON = "person"
        SCRIPT = "script"
        # Of what a document says that a parameter is worth.
        CLAIM = "claim"

    # Somebody waits for what these measure.
    AWAITED_PURPOSES = (Purpose.PERSON, Purpose.SCRIPT, Purpose.CHECK)
    IS_AWAITED = models.Q(purpose__in=AWAITED_PURPOSES) | models.Q(requested_by__isnull=False)

    class Question(models.TextChoices):
        # Is the suspected step there? How much of it does the head have? How large is the difference?
        # Is the head worse by a floor or more?
        TEST = "test"
        PLACE = "place"
        ESTIMATE = "estimate"
        BOUND = "bound"

    class State(models.TextChoices):
        REQUESTED = "requested"
        MEASURING = "measuring"
        DONE = "done"
        CANCELLED = "cancelled"

    class Verdict(models.TextChoices):
        # Of a test.
        CONFIRMED = "confirmed"
        REFUTED = "refuted"
        # Of a place: the head has the whole step, none of it, or a part.
        WHOLE = "whole"
        NONE = "none"
        PART = "part"
        # Of an estimate: the interval is as narrow as was asked for, or as the budget could make it.
        ESTIMATED = "estimated"
        # Of a bound: surely worse, by the floor or more; or surely by less than the floor.
        WORSE = "worse"
        NOT_WORSE = "not worse"
        # Of any: the budget was spent before anything was proved, or one of the sides doesn't run.
        UNDECIDED = "undecided"
        UNTESTABLE = "untestable"

    HELD = (State.MEASURING,)
    TERMINAL = (State.DONE, State.CANCELLED)
    REQUESTED = State.REQUESTED
    IS_OVERDUE = is_overdue("measuring_at", models.F("most_seconds"))
    ACTIVE = (State.REQUESTED, State.MEASURING)

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="experiments")
    purpose = models.CharField(max_length=20, choices=Purpose.choices)
    question = models.CharField(max_length=20, choices=Question.choices)
    base_commit = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="+")
    head_commit = models.ForeignKey(Commit, on_delete=models.CASCADE, related_name="+")
    base_configuration = models.ForeignKey(Configuration, on_delete=models.CASCADE, related_name="+")
    head_configuration = models.ForeignKey(Configuration, on_delete=models.CASCADE, related_name="+")
    metric = models.ForeignKey(Metric, on_delete=models.PROTECT, related_name="+")
    phase = models.CharField(
        max_length=200, blank=True, help_text="Path of the phase; empty: the whole step."
    )
    phases_with_step = ArrayField(
        models.CharField(max_length=200),
        default=list,
        blank=True,
        help_text="Phases that alone show the suspected step: their own time is weighed beside the whole.",
    )
    # The levels of the step that is suspected, in the metric's unit: what a pair's share is a part of.
    before = models.FloatField(null=True, blank=True)
    after = models.FloatField(null=True, blank=True)
    # Of an estimate: it ends once the ratio is known to so much of itself.
    precision = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(0.0005), MaxValueValidator(1)]
    )
    # Of an estimate, head / base: it ends too once the interval surely lies within, or outside, and is not
    # too wide to be of use. Open at an end that is null.
    range_low = models.FloatField(null=True, blank=True)
    range_high = models.FloatField(null=True, blank=True)
    floor = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0.0005), MaxValueValidator(10)],
        help_text="Of a bound: a smaller part of the base's value is no reason to refuse the head.",
    )
    error = models.FloatField(default=0.01, help_text="The chance of a false verdict that it may take.")
    most_pairs = models.PositiveSmallIntegerField(default=400)
    most_seconds = models.FloatField(default=1200)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    pairs_of = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="reused_by",
        help_text="What measured its pairs, of commits that hold the same code for its case.",
    )

    state = models.CharField(max_length=20, choices=State.choices, default=State.REQUESTED)
    verdict = models.CharField(max_length=20, choices=Verdict.choices, blank=True)
    # Why there is no clearer verdict, or why it was cancelled: a code with its values.
    reason = models.JSONField(default=dict, blank=True)
    machine = models.ForeignKey(Machine, null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    in_turns = models.BooleanField(
        default=False, help_text="Both sides' steps alternate; else one process follows the other."
    )

    # What the pairs say so far; ratio is head / base.
    ratio = models.FloatField(null=True, blank=True)
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    # Where the values may be 0 or less and have no ratio: head - base, in the metric's unit.
    difference = models.FloatField(null=True, blank=True)
    difference_low = models.FloatField(null=True, blank=True)
    difference_high = models.FloatField(null=True, blank=True)
    base_level = models.FloatField(
        null=True, blank=True, help_text="The median of the bases of its undisturbed pairs."
    )
    by_steps = models.BooleanField(
        null=True,
        blank=True,
        help_text="Whether that is by the pairs' single steps, or else by their means; empty: not known.",
    )
    by_means_alone = models.BooleanField(
        default=False, help_text="Single steps aren't asked: its step was proved by what they don't find."
    )
    learning = models.JSONField(
        default=dict,
        blank=True,
        help_text="Of a quality: over how many seeds, in how many the head reported none, and the step time.",
    )
    seconds = models.FloatField(default=0, help_text="Spent measuring, all attempts together.")
    commands = ArrayField(models.TextField(), default=list, blank=True, help_text="What repeats it.")
    # Functions of both sides, as a document's profile has them: {"base": ..., "head": ...}. Of a check's case
    # also, by kind of metric, which of them explain what is worse: {"suspects": {"memory": [...]}}.
    profiles = models.JSONField(default=dict, blank=True)
    measuring_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["requested_at", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=[
                    *("base_commit", "base_configuration", "head_commit", "head_configuration"),
                    *("metric", "phase"),
                ],
                condition=models.Q(question="estimate", state__in=("requested", "measuring")),
                name="experiment_estimated_once_at_a_time",
            )
        ]
        indexes = [
            models.Index(
                fields=["requested_at"],
                condition=models.Q(state="requested"),
                name="experiment_waiting",
            ),
            models.Index(
                fields=["measuring_at"],
                condition=models.Q(state="measuring"),
                name="experiment_measuring",
            ),
            models.Index(
                fields=["measuring_at"],
                condition=models.Q(measuring_at__isnull=False),
                name="experiment_begun",
            ),
            models.Index(fields=["project", "-requested_at"], name="experiment_newest"),
        ]

    def __str__(self) -> str:
        return f"experiment {self.pk}"

    def get_absolute_url(self) -> str:
        return page_address("experiment", self.pk)

    @property
    def is_awaited(self) -> bool:
        """As IS_AWAITED asks of rows."""
        return self.purpose in self.AWAITED_PURPOSES or self.requested_by_id is not None

    @property
    def has_two_cases(self) -> bool:
        """True where the sides differ in the parameters: at one commit a toggle."""
        return self.base_configuration_id != self.head_configuration_id

    @property
    def counts_functions(self) -> bool:
        """Whether the functions of both sides are counted before its first pair: of what nobody suspected."""
        return self.question in (Experiment.Question.ESTIMATE, Experiment.Question.BOUND)

    @property
    def differing_settings(self) -> tuple[set[str], set[str]]:
        """The settings, `compile=true`, that the base's case alone has, and those of the head's."""
        base, head = (
            set(filter(None, configuration.case.key.split(",")))
            for configuration in (self.base_configuration, self.head_configuration)
        )
        return base - head, head - base


class ExperimentPair(models.Model):
    """One repetition of each of an experiment's two sides, measured next to each other."""

    class Unreported(models.TextChoices):
        NEITHER = ""
        BASE = "base"
        HEAD = "head"
        BOTH = "both"

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="pairs")
    index = models.PositiveSmallIntegerField()
    base_first = models.BooleanField(
        help_text="Which was measured first, or began: at random, and as often the one as the other."
    )
    base = models.FloatField(help_text="The base's value, in the metric's unit.")
    head = models.FloatField()
    # Kept, shown, and not weighed: other work disturbed one of the two.
    disturbed = models.BooleanField(default=False)
    seed = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="Of a quality: the seed of both sides, another one in each pair."
    )
    # Of a quality that a side didn't report, its value is that of the step which is suspected.
    unreported = models.CharField(max_length=10, blank=True, default="", choices=Unreported.choices)
    seconds = models.FloatField(help_text="That both took; 0 where another experiment measured them.")
    # What this pair and those before it say together; as of the experiment.
    ratio = models.FloatField(null=True, blank=True)
    low = models.FloatField(null=True, blank=True)
    high = models.FloatField(null=True, blank=True)
    difference = models.FloatField(null=True, blank=True)
    difference_low = models.FloatField(null=True, blank=True)
    difference_high = models.FloatField(null=True, blank=True)
    phases = models.JSONField(
        default=dict, help_text="Own time by phase, in seconds per step: [of the base, of the head]."
    )
    typical_phases = models.JSONField(
        default=dict,
        help_text="As phases, of a typical step; empty of sides that took no turns.",
    )
    steps = models.JSONField(
        default=dict,
        help_text="Until the verdict, of sides that took turns: seconds of each step, or of a few.",
    )
    # By what single steps are weighed, also when they are gone; empty where too few were alike.
    step_ratio = models.FloatField(
        null=True,
        blank=True,
        help_text="Of a step's or a phase's time, head / base: the median of that of its steps.",
    )
    kinds_ratio = models.FloatField(
        null=True,
        blank=True,
        help_text="What long and short steps make of it, in this pair and those before it.",
    )
    kinds_error = models.FloatField(
        null=True, blank=True, help_text="The standard error of that, as a part of the whole."
    )
    others = models.JSONField(
        default=dict, help_text="What else both measured: by metric its unit, better, kind, base and head."
    )
    sweeps = models.JSONField(
        default=dict,
        decoder=MeasuredJsonDecoder,
        help_text="Where a metric of a sweep is weighed: parameter, amount, points of base and head.",
    )
    measured_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["index"]
        constraints = [models.UniqueConstraint(fields=["experiment", "index"], name="experiment_pair_once")]

    def __str__(self) -> str:
        return f"pair {self.index} of {self.experiment_id}"
