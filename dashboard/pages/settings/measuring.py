"""The numbers of a project: how long checks and experiments may measure, and how sure an alert is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard.access import Actor, visitor_of
from dashboard.models import Project
from dashboard.pages.form_fields import read_text
from dashboard.pages.settings.sections import settings_context
from dashboard.project_setup.changing import change_settings, parse_number
from dashboard.project_setup.errors import SetupError, format_bound
from dashboard.sentences.formatting import numbers


@dataclass(frozen=True, slots=True)
class NumberField:
    """A number of the project as a form has it: `factor` times what is stored."""

    name: str
    label: str
    hint: str
    factor: int = 1
    whole: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class FieldGroup:
    label: str
    fields: tuple[NumberField, ...]


GROUPS = (
    FieldGroup(
        "Checks of pull requests",
        (
            NumberField("check_minutes", "At most, in minutes", "that one check may measure"),
            NumberField(
                "check_floor", "Least loss, in %", "a pull request that loses less isn't refused", 100
            ),
        ),
    ),
    FieldGroup(
        "Experiments and proofs",
        (
            NumberField("experiment_minutes", "At most, in minutes", "that one may measure"),
            NumberField("experiment_pairs", "At most, in pairs", "of runs that one may measure", whole=True),
            NumberField("experiment_share", "Share of a machine, in %", "while runs wait, no more", 100),
        ),
    ),
    FieldGroup(
        "Alerts",
        (
            NumberField(
                "false_alerts_per_100_commits",
                "False alerts per 100 commits",
                "fewer are later, and miss small regressions",
            ),
            NumberField(
                "training_hours_per_week",
                "Training hours a week",
                "of all machines: regressions then say what they cost; empty: they don't",
                optional=True,
            ),
        ),
    ),
)
FIELDS = tuple(field for group in GROUPS for field in group.fields)


@require_http_methods(["GET", "HEAD", "POST"])
def measuring_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The form's fields: the names of FIELDS, and `sentinels`; each with the value that the page had shown in
    `NAME-shown`. Without that, as from a script, a field is stored whatever somebody else has set."""
    context = settings_context(request, slug, "project-measuring")
    project: Project = context["project"]
    if request.method != "POST":
        written = written_fields(project)
        return render_measuring(request, context, written, written, {})
    written = {field.name: read_text(request.POST, field.name)[:40].strip() for field in FIELDS}
    written["sentinels"] = "yes" if "sentinels" in request.POST else ""
    known = [name for name in written if f"{name}-shown" in request.POST]
    shown = {name: read_text(request.POST, f"{name}-shown") for name in known}
    if errors := keep_numbers(visitor_of(request), project, written, shown):
        return render_measuring(request, context, written, shown, errors)
    messages.success(request, "Saved: it holds for what is measured from now on.")
    return redirect("project-measuring", slug)


def keep_numbers(
    actor: Actor, project: Project, written: dict[str, str], shown: dict[str, str]
) -> dict[str, str]:
    """Store the fields that are written otherwise than `shown`, all or none: what a person leaves as it was
    takes back nothing of somebody else. Returns the sentence of each field that can't be stored, with
    `written` and `shown` as the form is to have them then.
    """
    touched = [name for name, text in written.items() if shown.get(name) != text]
    values, errors = read_fields({name: written[name] for name in touched})
    with transaction.atomic():
        stored = written_fields(Project.objects.select_for_update(no_key=True).get(pk=project.pk))
        for name in written.keys() - set(touched):
            written[name] = shown[name] = stored[name]
        for name in shown.keys() & set(touched) - errors.keys():
            if stored[name] not in (shown[name], written[name]):
                errors[name] = overtaken_sentence(stored[name], written[name])
                shown[name] = stored[name]
        if errors:
            return errors
        try:
            change_settings(actor, project, values)
        except SetupError as error:
            return {error.field: str(error)}
    return {}


def overtaken_sentence(stored: str, written: str) -> str:
    their_change = f"set it to {stored}" if stored else "emptied it"
    own_change = f"set it to {written}" if written else "empty it"
    return f"Somebody else has {their_change} since this page was loaded. Save again to {own_change}."


def written_fields(project: Project) -> dict[str, str]:
    """What the form's fields hold; `sentinels` yes or nothing."""
    shown = {field.name: getattr(project, field.name) for field in FIELDS}
    written = {
        field.name: ""
        if shown[field.name] is None
        else numbers.format_field(shown[field.name] * field.factor)
        for field in FIELDS
    }
    return {**written, "sentinels": "yes" if project.sentinels else ""}


def read_fields(written: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """(values to store, sentence of each field that can't be) of the fields that are given."""
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    if "sentinels" in written:
        values["sentinels"] = bool(written["sentinels"])
    for field in FIELDS:
        if field.name not in written:
            continue
        try:
            values[field.name] = read_number(field, written[field.name])
        except SetupError as error:
            errors[field.name] = str(error)
    return values, errors


def read_number(field: NumberField, text: str) -> float | int | None:
    """Raises SetupError: what is out of its bounds too, in the unit of the form."""
    if field.optional and not text.strip():
        return None
    name = f"“{field.label}”"
    typed = parse_number(text.strip().removesuffix("%"), field.name, whole=field.whole, name=name)
    # 0.7 % is 0.007, and not what a division of floats makes of it.
    value = float(Decimal(str(typed)) / field.factor) if field.factor != 1 else typed
    field_of_model: Any = Project._meta.get_field(field.name)
    for validator in field_of_model.validators:
        bound = format_bound(validator.limit_value * field.factor)
        if isinstance(validator, MinValueValidator) and value < validator.limit_value:
            raise SetupError(f"{name} must be {bound} or more.", field.name)
        if isinstance(validator, MaxValueValidator) and value > validator.limit_value:
            raise SetupError(f"{name} must be {bound} or less.", field.name)
    return value


def render_measuring(
    request: HttpRequest,
    context: dict[str, Any],
    written: Mapping[str, str],
    shown: Mapping[str, str],
    errors: Mapping[str, str],
) -> HttpResponse:
    groups = [
        (group.label, [(field, written[field.name], errors.get(field.name, "")) for field in group.fields])
        for group in GROUPS
    ]
    more = {"groups": groups, "sentinels": written["sentinels"], "shown": shown.items()}
    return render(request, "settings/measuring.html", {**context, **more}, status=400 if errors else 200)
