from django.urls import path

from dashboard.pages import accounts, overview, project, regressions, run, series, triage

urlpatterns = [
    path("", overview.overview_page, name="overview"),
    path("work/", overview.active_runs_fragment, name="work"),
    path("projects/<slug:slug>/", project.project_page, name="project"),
    path("projects/<slug:slug>/runs/", project.runs_page, name="project-runs"),
    path("projects/<slug:slug>/live-runs/", project.live_runs_fragment, name="project-live-runs"),
    path("projects/<slug:slug>/commits/", project.commits_page, name="project-commits"),
    path("projects/<slug:slug>/triggers/", project.triggers_page, name="project-triggers"),
    path("series/<int:pk>/", series.series_page, name="series"),
    path("runs/<int:pk>/", run.run_page, name="run"),
    path("runs/<int:pk>/status/", run.run_status_fragment, name="run-status"),
    path("runs/<int:pk>/frames/", run.run_frames_fragment, name="run-frames"),
    path("runs/<int:pk>/log/", run.run_log_text, name="run-log"),
    path("runs/<int:pk>/cancel/", run.cancel_run, name="run-cancel"),
    path("regressions/", regressions.regressions_page, name="regressions"),
    path("regressions/<int:pk>/", regressions.regression_page, name="regression"),
    path("regressions/<int:pk>/triage/", triage.submit_triage, name="regression-triage"),
    path("deliveries/", regressions.deliveries_page, name="deliveries"),
    path("sign-in/", accounts.sign_in, name="sign-in"),
    path("sign-out/", accounts.sign_out, name="sign-out"),
]
