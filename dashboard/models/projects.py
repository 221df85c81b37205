from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Now
from paceline.manifest import ManifestError
from paceline.manifest.policy import parse_policy_text

from dashboard.page_addresses import page_address
from dashboard.repositories import (
    DETACHED,
    LONGEST_BRANCH,
    Git,
    Mirror,
    git_without_account,
    join_credentials,
    locate_mirror,
    split_credentials,
)
from dashboard.secrets import EncryptedField

# /projects/new/ adds one.
RESERVED_SLUGS = ("new",)
NAME_RULE = "A name has letters from a to z, digits, - and _, such as my-training."
ORIGIN = re.compile(r"\*|https?://(\*\.)?[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?")
MOST_ORIGINS = 20


def validate_origins(text: str) -> None:
    """Each line is what a browser's policy takes for a site; `*` is any."""
    for line in text.split():
        if not ORIGIN.fullmatch(line):
            raise ValidationError(f"{line} is no site such as https://wiki.example.org.")
    if len(text.split()) > MOST_ORIGINS:
        raise ValidationError(f"At most {MOST_ORIGINS} sites.")


class Project(models.Model):
    """A monitored git repository and its settings."""

    class Visibility(models.TextChoices):
        PUBLIC = "public"
        PRIVATE = "private"

    slug = models.SlugField(max_length=60, unique=True)
    repository = models.CharField(max_length=4096, help_text="Path or URL that git can fetch from.")
    branch = models.CharField(max_length=LONGEST_BRANCH, default="main")
    visibility = models.CharField(
        max_length=10,
        choices=Visibility.choices,
        default=Visibility.PUBLIC,
        help_text="Who may read it: everybody, or its members alone.",
    )
    manifest = models.TextField(
        blank=True, help_text="Kept here for code that can't be changed; empty: paceline.toml of each commit."
    )
    policy = models.TextField(
        blank=True,
        help_text="The table `policy` as TOML, above the manifest's; empty: the manifest's alone.",
    )
    # That of the manifest of the branch's newest commit, as it was last read.
    manifest_policy = models.JSONField(default=dict, blank=True, editable=False)
    manifest_policy_commit = models.CharField(max_length=64, blank=True, editable=False)
    # The commit whose claims were read last by themselves.
    claims_read_at = models.CharField(max_length=64, blank=True, default="", editable=False)
    # The quiet hours that are, or that come next: claims read them without a look at the policy.
    quiet_from = models.DateTimeField(null=True, blank=True, editable=False)
    quiet_until = models.DateTimeField(null=True, blank=True, editable=False)
    # By the database's clock.
    IS_QUIET = models.Q(quiet_from__lte=Now(), quiet_until__gt=Now())
    false_alerts_per_100_commits = models.FloatField(
        default=1.0,
        validators=[MinValueValidator(0.01), MaxValueValidator(100)],
        help_text="Of its alerts, so many may be false, however many series there are.",
    )
    # What alerts have spent of that budget, as detection counts it.
    risk = models.JSONField(default=dict, blank=True, editable=False)
    training_hours_per_week = models.FloatField(
        null=True,
        blank=True,
        validators=[MinValueValidator(0.01), MaxValueValidator(1e7)],
        help_text="How many machine hours a week the project trains: what a slowdown costs.",
    )
    # The budget of one experiment, and of all of them while runs wait.
    experiment_pairs = models.PositiveSmallIntegerField(
        default=400, validators=[MinValueValidator(4), MaxValueValidator(1000)]
    )
    experiment_minutes = models.FloatField(
        default=20, validators=[MinValueValidator(0.1), MaxValueValidator(10080)]
    )
    experiment_share = models.FloatField(
        default=0.25,
        validators=[MinValueValidator(0.01), MaxValueValidator(1)],
        help_text="Of a machine's time, at most, while runs wait.",
    )
    check_minutes = models.FloatField(
        default=20,
        validators=[MinValueValidator(0.1), MaxValueValidator(10080)],
        help_text="That a pull request's check may measure.",
    )
    check_floor = models.FloatField(
        default=0.03,
        validators=[MinValueValidator(0.0005), MaxValueValidator(10)],
        help_text="A pull request that is worse by less isn't refused: 0.03 is 3 %.",
    )
    sentinels = models.BooleanField(
        default=True, help_text="Measure a pinned commit of each case daily, to see when a machine moves."
    )
    poll_minutes = models.PositiveSmallIntegerField(
        default=0,
        validators=[MaxValueValidator(10080)],
        help_text="How often the site looks for new commits by itself; 0: never.",
    )
    credentials = EncryptedField(
        blank=True, default="", help_text="USER:PASSWORD of the repository's address, where it needs them."
    )
    uses_account = models.BooleanField(
        db_default=True,
        default=True,
        editable=False,
        help_text="Whether it is read as the site's account reads, and led on by redirects: who named its "
        "address may add projects.",
    )
    hook_secret = EncryptedField(blank=True, default="", help_text="Signs the requests of the git hook.")
    mirror_name = models.CharField(
        max_length=60,
        blank=True,
        default="",
        editable=False,
        help_text="By which its mirror is found on disk: its first name. Empty: its name.",
    )
    removed_slug = models.CharField(
        max_length=60,
        blank=True,
        default="",
        editable=False,
        help_text="What it was called until a person removed it: its rows are being deleted.",
    )
    embed_origins = models.TextField(
        blank=True,
        default="",
        validators=[validate_origins],
        help_text="Sites whose pages may show its charts in a frame, one a line; empty: none.",
    )
    archive_sha256 = models.CharField(
        max_length=64,
        blank=True,
        default="",
        editable=False,
        help_text="Of the archive that it was made from: a second import of it changes nothing.",
    )
    imported_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When it was made from an archive."
    )
    repository_read_at = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="When its repository was last read."
    )
    repository_problem = models.TextField(
        blank=True, default="", editable=False, help_text="Why it can't be read since then."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.slug

    def get_absolute_url(self) -> str:
        return page_address("project", self.slug)

    @property
    def is_unread_copy(self) -> bool:
        """Whether it came from an archive, with the address of a repository that this site never read."""
        return bool(self.repository) and self.imported_at is not None and self.repository_read_at is None

    @property
    def is_measurable(self) -> bool:
        """Whether its commits can be read, and so measured here."""
        return bool(self.repository) and not self.is_unread_copy

    def note_reading(self, problem: str = "") -> None:
        """Remember that its repository was read just now, or why it could not be."""
        # A fetch takes minutes: by now the project may have another repository, which wasn't asked.
        rows = Project.objects.filter(pk=self.pk, repository=self.repository, branch=self.branch)
        if problem:
            # A remote's words may have a NUL, which Postgres keeps in no text.
            storable = problem.replace("\0", "\N{REPLACEMENT CHARACTER}")
            rows.exclude(repository_problem=storable).update(repository_problem=storable)
        else:
            rows.update(repository_read_at=Now(), repository_problem="")

    def clean_fields(self, exclude: Collection[str] | None = None) -> None:
        """As Django does; of a name that can't be one it speaks of a slug, which no page calls it."""
        try:
            super().clean_fields(exclude)
        except ValidationError as error:
            errors = error.error_dict
            if any(found.code == "invalid" for found in errors.get("slug", ())):
                errors["slug"] = [ValidationError(NAME_RULE, code="invalid")]
            raise ValidationError(errors) from error

    def clean(self) -> None:
        """Take credentials out of the address; refuse a reserved name, and a policy that can't be read."""
        if self.slug in RESERVED_SLUGS:
            raise ValidationError({"slug": f"No project can be called {self.slug}: its address is a page's."})
        if FormerName.objects.filter(slug=self.slug).exclude(project=self.pk).exists():
            raise ValidationError({"slug": f"Another project still answers to {self.slug}, its former name."})
        try:
            parse_policy_text(self.policy, "policy")
        except ManifestError as error:
            raise ValidationError({"policy": error.sentence}) from error
        self.repository, credentials = split_credentials(self.repository)
        if credentials:
            self.credentials = credentials

    @property
    def mirror(self) -> Mirror:
        """The repository as this host knows it."""
        name = self.mirror_name or self.slug
        git = Git() if self.uses_account else git_without_account()
        mirror = locate_mirror(settings.PACELINE_HOME, name, self.fetch_address, self.branch, git)
        return replace(mirror, project=self.slug)

    def files_beside_manifest(self) -> dict[str, str]:
        """By their paths the texts that are put into each checkout; they count with a manifest kept here."""
        return dict(self.kept_files.values_list("path", "text")) if self.manifest else {}

    @property
    def fetch_address(self) -> str:
        """The repository's address with its credentials: for git alone, never shown or logged."""
        return join_credentials(self.repository, self.credentials)


class FormerName(models.Model):
    """What a project was called before: addresses, hooks and commands with it still lead to the project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="former_names")
    slug = models.SlugField(max_length=60, unique=True)
    until = models.DateTimeField(auto_now_add=True, help_text="When the project got another one.")

    class Meta:
        verbose_name = "former name"
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.slug


class Commit(models.Model):
    """A commit of the project, with its parents, and its position on a branch."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="commits")
    hash = models.CharField(max_length=64)
    parents = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    branch = models.CharField(max_length=LONGEST_BRANCH)
    position = models.PositiveIntegerField(help_text="First-parent commits before it on its branch.")
    left_branch = models.CharField(
        max_length=LONGEST_BRANCH,
        blank=True,
        help_text="The branch that held it until its history was rewritten.",
    )
    fork = models.PositiveIntegerField(
        null=True, blank=True, help_text="Where its branch left the project's: a position there."
    )
    tags = ArrayField(models.TextField(), default=list, blank=True, help_text="That name it.")
    subject = models.CharField(max_length=500, blank=True)
    author = models.CharField(max_length=200, blank=True)
    committed_at = models.DateTimeField()
    manifest_problem = models.TextField(
        blank=True, default="", help_text="Why its manifest can't be read: then nothing of it is measured."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "hash"], name="commit_once_per_project")]
        indexes = [
            models.Index(fields=["project", "branch", "position"], name="commit_on_branch"),
            # Few commits have a tag.
            models.Index(fields=["project"], condition=~models.Q(tags=[]), name="commit_tagged"),
            # Search: by the beginning of a hash, and by words of a subject, in all projects.
            models.Index(fields=["hash"], opclasses=["varchar_pattern_ops"], name="commit_hash_prefix"),
            GinIndex(SearchVector("subject", config="simple"), name="commit_subject_words"),
        ]

    def __str__(self) -> str:
        return self.short

    @property
    def short(self) -> str:
        return self.hash[:10]

    @property
    def is_merge(self) -> bool:
        return len(self.parents) > 1

    @property
    def on_branch(self) -> bool:
        """Whether a branch of the project holds it, or held it until its history was rewritten.

        The proposed head of a fork is on none: whoever wrote it needn't have any right here.
        """
        return self.branch != DETACHED or self.left_branch != ""


def case_name(benchmark: str, key: str) -> str:
    """`train[fast=true]`, or `train` of a case without parameters, whose key is empty."""
    return f"{benchmark}[{key}]" if key else benchmark


class Case(models.Model):
    """A benchmark with its parameters."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="cases")
    benchmark = models.CharField(max_length=100)
    params = models.JSONField(default=dict, blank=True)
    key = models.CharField(max_length=300, blank=True, help_text="Canonical text of the parameters.")

    class Meta:
        ordering = ["benchmark", "key"]
        constraints = [
            models.UniqueConstraint(fields=["project", "benchmark", "key"], name="case_once_per_project")
        ]

    def __str__(self) -> str:
        return case_name(self.benchmark, self.key)


class Trigger(models.Model):
    """A request to measure commits, as it came in; resolved into runs, or refused with a reason."""

    class Source(models.TextChoices):
        WEB = "web"
        TOKEN = "token"  # noqa: S105
        HOOK = "hook"
        COMMAND = "command"
        SCHEDULE = "schedule"
        FORGE = "forge"
        POLL = "poll"

    # Somebody waits for what these ask for; the others ask by themselves.
    AWAITED = (Source.WEB, Source.TOKEN, Source.COMMAND)

    class State(models.TextChoices):
        RECEIVED = "received"
        RESOLVED = "resolved"
        REFUSED = "refused"

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="triggers")
    source = models.CharField(max_length=20, choices=Source.choices)
    state = models.CharField(max_length=20, choices=State.choices, default=State.RECEIVED)
    # What was asked for: {"commit": REV} or {"range": "A..B"} or {"last": N}; {} is the newest commit.
    revisions = models.JSONField(default=dict, blank=True)
    benchmarks = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    ref = models.TextField(
        blank=True, help_text="What was pushed, such as refs/tags/v1; empty: the project's branch."
    )
    schedule = models.CharField(max_length=100, blank=True, help_text="Of the policy, whose time had come.")
    # Why the policy left commits or benchmarks out: dashboard/policy/decision.py has the reasons.
    left_out = models.JSONField(default=list, blank=True)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    # A signed request carries an identity of its own; a second one with the same is a replay.
    delivery = models.CharField(max_length=100, null=True, blank=True, unique=True)
    detail = models.TextField(blank=True, help_text="Why it was refused, or how many runs it became.")
    received_at = models.DateTimeField(auto_now_add=True)
    resolved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-received_at"]
        indexes = [
            models.Index(fields=["received_at"], condition=models.Q(state="refused"), name="trigger_refused")
        ]

    def __str__(self) -> str:
        return f"{self.source} trigger {self.pk}"


class Backlog(models.Model):
    """Commits of a push that are asked for once fewer runs of the project wait."""

    trigger = models.OneToOneField(
        Trigger, primary_key=True, on_delete=models.CASCADE, related_name="backlog"
    )
    branch = models.CharField(max_length=LONGEST_BRANCH)
    hashes = ArrayField(models.CharField(max_length=64), help_text="The next one to be asked for first.")

    def __str__(self) -> str:
        return f"backlog of {self.trigger}"


class Schedule(models.Model):
    """A schedule of a project's policy: when it is due."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="schedules")
    name = models.CharField(max_length=100)
    cron = models.CharField(max_length=300, help_text="Minute, hour, day, month, weekday.")
    time_zone = models.CharField(max_length=100)
    next_at = models.DateTimeField(help_text="When it is due next.")
    last_at = models.DateTimeField(null=True, blank=True, help_text="When it was last.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="schedule_once_per_project")]
        indexes = [models.Index(fields=["next_at"], name="schedule_due")]

    def __str__(self) -> str:
        return f"schedule {self.name} of {self.project}"
