from django.urls import path

from dashboard.pages import accounts, overview, project, regressions, run, series, triage

urlpatterns = [
    path("", overview.overview, name="overview"),
    path("work/", overview.work, name="work"),
    path("projects/<slug:slug>/", project.project, name="project"),
    path("projects/<slug:slug>/runs/", project.run_list, name="project-runs"),
    path("projects/<slug:slug>/live-runs/", project.live_runs, name="project-live-runs"),
    path("projects/<slug:slug>/commits/", project.commit_list, name="project-commits"),
    path("projects/<slug:slug>/triggers/", project.trigger_list, name="project-triggers"),
    path("series/<int:pk>/", series.series, name="series"),
    path("runs/<int:pk>/", run.run, name="run"),
    path("runs/<int:pk>/status/", run.run_status, name="run-status"),
    path("runs/<int:pk>/frames/", run.run_frames, name="run-frames"),
    path("runs/<int:pk>/log/", run.run_log, name="run-log"),
    path("runs/<int:pk>/cancel/", run.cancel, name="run-cancel"),
    path("regressions/", regressions.regressions, name="regressions"),
    path("regressions/<int:pk>/", regressions.regression, name="regression"),
    path("regressions/<int:pk>/triage/", triage.decide, name="regression-triage"),
    path("deliveries/", regressions.deliveries, name="deliveries"),
    path("sign-in/", accounts.sign_in, name="sign-in"),
    path("sign-out/", accounts.sign_out, name="sign-out"),
]
