"""What is measured: every page that shows history, and every list of the API."""

from __future__ import annotations


def list_addresses() -> dict[str, str]:
    """By a name; each shows as much of the filled site as one of its kind can."""
    from dashboard.models import Document, Experiment, Machine, Project, Regression, Run, Series

    project = Project.objects.filter(slug__startswith="history-").order_by("pk")[0]
    of_project = {"configuration__case__project": project}
    series = Series.objects.filter(headline=True, **of_project).order_by("pk")[0]
    newest = Run.objects.filter(
        pk__in=Document.objects.values("run"), commit__branch=project.branch, **of_project
    ).latest("requested_at")
    regression = Regression.objects.filter(project=project, state="confirmed").order_by("-pk")[0]
    experiment = Experiment.objects.filter(project=project).order_by("-pk")[0]
    earlier = project.commits.filter(branch=project.branch).order_by("-position")[5].hash
    machine = Machine.objects.order_by("pk")[0]
    tabs = ("runs", "commits", "triggers", "costs", "experiments", "checks", "claims")
    views = {"history": "regressions", "heat map": "heatmap", "noise": "noise", "trust": "trust"}
    lists = ("cases", "series", "commits", "runs", "triggers", "experiments", "checks")
    return {
        "overview": "/",
        "regressions": "/regressions/",
        "regressions of a project": f"/regressions/?project={project.slug}",
        "regression": f"/regressions/{regression.pk}/",
        "deliveries": "/deliveries/",
        "machines": "/machines/",
        "machine": f"/machines/{machine.pk}/",
        "project": f"/projects/{project.slug}/",
        **{f"project's {name}": f"/projects/{project.slug}/{name}/" for name in tabs},
        **{f"project's {name}": f"/projects/{project.slug}/{where}/" for name, where in views.items()},
        "commit": f"/projects/{project.slug}/commits/{regression.first_bad.hash}/",
        "comparison": f"/projects/{project.slug}/compare/?base={earlier}&head={newest.commit.hash}",
        "search": "/search/?q=history",
        "queue": "/queue/",
        "project's feed": f"/projects/{project.slug}/regressions.atom",
        "series": f"/series/{series.pk}/",
        "series, 1,000 runs": f"/series/{series.pk}/?show=1000",
        "run": f"/runs/{newest.pk}/",
        "experiment": f"/experiments/{experiment.pk}/",
        "API projects": "/api/v1/projects",
        **{f"API {name}": f"/api/v1/projects/{project.slug}/{name}" for name in lists},
        "API points": f"/api/v1/series/{series.pk}/points?limit=200",
        "API changes": f"/api/v1/series/{series.pk}/changes",
        "API regressions": "/api/v1/regressions",
        "API deliveries": "/api/v1/deliveries",
        "API machines": "/api/v1/machines",
    }
