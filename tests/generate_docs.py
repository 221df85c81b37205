"""The generated parts of docs/: run `python -m tests.generate_docs` after a change of a table or a metric."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from paceline.metrics import METRICS

DOCS = Path(__file__).resolve().parent.parent / "docs"


def replace_generated_part(name: str, text: str, body: str) -> str:
    """`text` with what stands between the comments <!-- name ... --> and <!-- end name --> replaced."""
    pattern = rf"(<!-- {name}:[^>]*-->\n).*?(<!-- end {name} -->)"
    if not re.search(pattern, text, re.DOTALL):
        raise ValueError(f"no generated part {name!r}")
    return re.sub(pattern, lambda match: f"{match[1]}\n{body}\n{match[2]}", text, flags=re.DOTALL)


def metrics_table() -> str:
    head = ["| metric | unit | better | kind | what it is |", "|---|---|---|---|---|"]
    rows = [
        f"| `{metric.name}` | {metric.unit} | {metric.better} | {metric.kind} | {metric.description} |"
        for metric in METRICS.values()
    ]
    return "\n".join(head + rows) + "\n"


def column_row(field: Any) -> str:
    kind = field.get_internal_type().removesuffix("Field")
    if field.is_relation:
        kind = f"-> `{field.related_model._meta.db_table}`"
    notes = [str(field.help_text)] if field.help_text else []
    if field.choices:
        notes.append("One of " + ", ".join(f"`{value}`" for value, _ in field.choices) + ".")
    return f"| `{field.column}` | {kind} | {'yes' if field.null else ''} | {' '.join(notes)} |"


def schema_tables() -> str:
    from django.apps import apps

    parts = []
    models = apps.get_app_config("dashboard").get_models()
    for model in sorted(models, key=lambda model: model._meta.db_table):
        summary = " ".join((model.__doc__ or "").split())
        head = [f"### `{model._meta.db_table}`", "", summary, "", "| column | type | null | |"]
        head.append("|---|---|---|---|")
        fields = [column_row(field) for field in model._meta.concrete_fields]
        rules = [f"- unique `{rule.name}`: {constrained_columns(rule)}" for rule in model._meta.constraints]
        rules += [f"- index `{index.name}`: {', '.join(index.fields)}" for index in model._meta.indexes]
        parts.append("\n".join([*head, *fields, "", *rules]).rstrip() + "\n")
    return "\n".join(parts)


def constrained_columns(rule: Any) -> str:
    """`task, MD5(Cast(F(arguments)))`: the columns, or what is made of them."""
    return ", ".join(rule.fields or [describe_expression(part) for part in rule.expressions])


def describe_expression(part: Any) -> str:
    if hasattr(part, "name"):
        return str(part.name)
    inside = ", ".join(describe_expression(source) for source in part.get_source_expressions())
    return f"{type(part).__name__}({inside})"


def archive_table() -> str:
    from dashboard.archive.tables import TABLES, archived_fields, referred_table

    rows = ["| table | columns |", "|---|---|"]
    for table in TABLES:
        columns = [
            f"`{column.name}`" + (f" -> {found.name}" if (found := referred_table(column)) else "")
            for column in archived_fields(table)
        ]
        rows.append(f"| `{table.name}` | {', '.join(columns)} |")
    return "\n".join(rows)


def rules_table() -> str:
    from django.urls import get_resolver

    from dashboard.access.rules import OPERATION_RULES, RULES
    from dashboard.access.system_checks import named_routes

    routes = {name: route for name, route, _ in named_routes(get_resolver().url_patterns)}
    rows = ["| address | for | or with | tokens |", "|---|---|---|---|"]
    for name, rule in sorted(RULES.items(), key=lambda item: routes[item[0]]):
        rows.append(rule_row(f"/{routes[name]}", rule))
    for name, rules in sorted(OPERATION_RULES.items(), key=lambda item: routes[item[0]]):
        rows += [rule_row(f"{method} /{routes[name]}", rule) for method, rule in rules.items()]
    return "\n".join(rows)


def rule_row(address: str, rule: Any) -> str:
    who = f"{rule.who}: what they may view" if rule.spans_projects else str(rule.who)
    verb, _, noun = rule.permission.rpartition(".")[2].partition("_")
    permission = f"*Can {verb} {noun}*" if verb else ""
    return f"| `{address}` | {who} | {permission} | {'yes' if rule.api else ''} |"


def operations_table() -> str:
    from dashboard.api.description import describe_api

    rows = ["| operation | what it does | for |", "|---|---|---|"]
    for route, operations in sorted(describe_api()["paths"].items()):
        for method, operation in operations.items():
            summary = operation["description"].partition("\n\n")[0].replace("\n", " ")
            address = route.removeprefix("/api/v1")
            rows.append(f"| `{method.upper()} {address}` | {summary} | {operation['x-for']} |")
    return "\n".join(rows) + "\n"


def generated_files() -> dict[Path, str]:
    """Each file that has generated parts, with the text that it should hold."""
    glossary, schema, rights = DOCS / "glossary.md", DOCS / "schema.md", DOCS / "rights.md"
    api, export = DOCS / "api.md", DOCS / "export.md"
    return {
        export: replace_generated_part("archive", export.read_text(), archive_table()),
        glossary: replace_generated_part("metrics", glossary.read_text(), metrics_table()),
        schema: replace_generated_part("tables", schema.read_text(), schema_tables()),
        api: replace_generated_part("operations", api.read_text(), operations_table()),
        rights: replace_generated_part("rules", rights.read_text(), rules_table()),
    }


if __name__ == "__main__":
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    for path, text in generated_files().items():
        path.write_text(text)
