from django.urls import URLPattern, URLResolver, include, path

from dashboard.pages import checks, claims, deliveries, overview, queue, search
from dashboard.pages.comparisons import compare
from dashboard.pages.experiments import experiment
from dashboard.pages.experiments import form as experiment_form
from dashboard.pages.machines import machine, machines
from dashboard.pages.noise import cases as case_noise
from dashboard.pages.projects import commit, heatmap, new_project, project
from dashboard.pages.projects import lists as project_lists
from dashboard.pages.regressions import alarm_record, feed, inbox, regression, triage
from dashboard.pages.regressions import history as regression_history
from dashboard.pages.runs import cancel_waiting, run
from dashboard.pages.runs import costs as run_costs
from dashboard.pages.series import export as series_export
from dashboard.pages.series import series
from dashboard.pages.settings import (
    audit,
    channel_form,
    channels,
    forge,
    general,
    hook,
    kept_files,
    manifest,
    measuring,
    members,
    policy,
    removal,
    retention,
    sharing,
    tokens,
)
from dashboard.pages.sharing import (
    chart_pictures,
    flame_pictures,
    machine_pictures,
    share,
    shared_pictures,
    step_picture,
)
from dashboard.pages.site import accounts as site_accounts
from dashboard.pages.site import jobs as site_jobs
from dashboard.pages.triggers import missing_runs, trigger

SETTINGS = [
    path("channels/", channels.channels_page, name="project-channels"),
    path("channels/new/<slug:kind>/", channel_form.new_channel_page, name="project-channel-new"),
    path("channels/<int:pk>/", channel_form.channel_page, name="project-channel"),
    path("channels/<int:pk>/change/", channels.change_channel, name="project-channel-change"),
    path("channels/<int:pk>/rules/", channel_form.change_rules, name="project-channel-rules"),
    path("channels/tests/<int:pk>/", channels.delivered_test_fragment, name="project-channel-test"),
    path("policy/", policy.policy_page, name="project-policy"),
    path("retention/", retention.retention_page, name="project-retention"),
    path("", general.general_page, name="project-settings"),
    path("repository/", general.test_repository, name="project-repository"),
    path("repository/<int:pk>/", general.tested_repository_page, name="project-repository-test"),
    path(
        "repository/<int:pk>/status/",
        general.repository_status_fragment,
        name="project-repository-status",
    ),
    path("measuring/", measuring.measuring_page, name="project-measuring"),
    path("manifest/", manifest.manifest_page, name="project-manifest"),
    path("manifest/file/", kept_files.kept_file_page, name="project-kept-file"),
    path("manifest/<int:pk>/", manifest.difference_fragment, name="project-manifest-difference"),
    path("forge/", forge.forge_page, name="project-forge"),
    path("forge/test/", forge.forge_test_fragment, name="project-forge-test"),
    path("hook/", hook.hook_page, name="project-hook"),
    path("remove/", removal.removal_page, name="project-removal"),
    path("sharing/", sharing.sharing_page, name="project-sharing"),
    path("export/", sharing.export_project, name="project-export"),
    path("members/", members.members_page, name="project-members"),
    path("members/<int:member>/", members.change_member, name="project-member"),
    path("tokens/", tokens.tokens_page, name="project-tokens"),
    path("tokens/<int:token>/revoke/", tokens.revoke_project_token, name="project-token-revoke"),
    path("audit/", audit.project_audit_page, name="project-audit"),
]
PROJECT: list[URLPattern | URLResolver] = [
    path("", project.project_page, name="project"),
    path("runs/", project_lists.runs_page, name="project-runs"),
    path("runs/waiting/cancel/", cancel_waiting.cancel_waiting_page, name="waiting-cancel"),
    path("runs/remeasuring/cancel/", run.cancel_remeasuring, name="remeasuring-cancel"),
    path("live-runs/", project.live_runs_fragment, name="project-live-runs"),
    path("trigger/", trigger.request_runs, name="trigger"),
    path("triggers/<int:pk>/", trigger.trigger_page, name="project-trigger"),
    path("triggers/<int:pk>/status/", trigger.trigger_status_fragment, name="project-trigger-status"),
    path("triggers/<int:pk>/cancel/", trigger.cancel_trigger, name="project-trigger-cancel"),
    path("commits/", project_lists.commits_page, name="project-commits"),
    path("commits/<str:commit>/", commit.commit_page, name="commit"),
    path("regressions/", regression_history.history_page, name="project-regressions"),
    path("heatmap/", heatmap.heatmap_page, name="project-heatmap"),
    path("noise/", case_noise.noise_page, name="project-noise"),
    path("trust/", alarm_record.trust_page, name="project-trust"),
    path("measure-missing/", missing_runs.measure_missing, name="measure-missing"),
    path("read-commits/", missing_runs.read_commits, name="read-commits"),
    path("triggers/", project_lists.triggers_page, name="project-triggers"),
    path("costs/", run_costs.costs_page, name="project-costs"),
    path("compare/", compare.compare_page, name="project-compare"),
    path("compare/flame.<str:kind>", flame_pictures.difference_flame, name="project-compare-flame"),
    path(
        "compare/metrics.<str:kind>",
        chart_pictures.comparison_metrics_picture,
        name="project-compare-metrics",
    ),
    path("compare.md", compare.comparison_markdown, name="project-compare-markdown"),
    path("compare.csv", compare.comparison_csv, name="project-compare-csv"),
    path("experiments/", experiment.experiments_page, name="project-experiments"),
    path("experiments/new/", experiment_form.new_experiment_page, name="experiment-new"),
    path("claims/", claims.claims_page, name="project-claims"),
    path("claims/<str:benchmark>/", claims.benchmark_page, name="benchmark-claims"),
    path("measure-claims/", claims.measure_claims, name="claims-measure"),
    path("regressions.atom", feed.project_feed, name="project-feed"),
    path("checks/", checks.checks_page, name="project-checks"),
    path("settings/", include(SETTINGS)),
]
NEW_PROJECT = [
    path("", new_project.new_project_page, name="project-new"),
    path("manifest/", new_project.preview_manifest_fragment, name="project-new-manifest"),
    path("<int:pk>/", new_project.tested_project_page, name="project-new-tested"),
    path("<int:pk>/status/", new_project.new_project_status_fragment, name="project-new-status"),
]
SERIES = [
    path("", series.series_page, name="series"),
    path("part/", series.series_part, name="series-part"),
    path("points.csv", series_export.series_csv, name="series-csv"),
    path("points.json", series_export.series_json, name="series-json"),
    path("picture.<str:kind>", shared_pictures.series_picture, name="series-picture"),
    path("badge.svg", shared_pictures.series_badge, name="series-badge"),
    path("embed/", shared_pictures.series_embed, name="series-embed"),
    path("share/", share.share_series_page, name="series-share"),
]
RUN = [
    path("", run.run_page, name="run"),
    path("status/", run.run_status_fragment, name="run-status"),
    path("frames/", run.run_frames_fragment, name="run-frames"),
    path("document/", run.run_document, name="run-document"),
    path("log/", run.run_log_text, name="run-log"),
    path("cancel/", run.cancel_run, name="run-cancel"),
    path("picture.<str:kind>", shared_pictures.run_picture, name="run-picture"),
    path("flame.<str:kind>", flame_pictures.run_flame, name="run-flame"),
    path("telemetry.<str:kind>", chart_pictures.run_telemetry_picture, name="run-telemetry"),
    path("scaling.<str:kind>", chart_pictures.run_scaling_picture, name="run-scaling"),
    path("step-times.<str:kind>", chart_pictures.run_step_times_picture, name="run-step-times"),
    path("share/", share.share_run_page, name="run-share"),
]
REGRESSION = [
    path("", regression.regression_page, name="regression"),
    path("triage/", triage.submit_triage, name="regression-triage"),
    path("snooze/", triage.submit_snooze, name="regression-snooze"),
    path("picture.<str:kind>", shared_pictures.regression_picture, name="regression-picture"),
    path("share/", share.share_regression_page, name="regression-share"),
]
EXPERIMENT = [
    path("", experiment.experiment_page, name="experiment"),
    path("status/", experiment.experiment_status_fragment, name="experiment-status"),
    path("cancel/", experiment.cancel_experiment, name="experiment-cancel"),
    path("picture.<str:kind>", chart_pictures.experiment_picture, name="experiment-picture"),
]
CHECK = [
    path("", checks.check_page, name="check"),
    path("status/", checks.check_status_fragment, name="check-status"),
    path("change/", checks.change_check, name="check-change"),
]
MACHINE = [
    path("", machine.machine_page, name="machine"),
    path("status/", machine.machine_status_fragment, name="machine-status"),
    path("calibration.<str:kind>", machine_pictures.machine_calibration_picture, name="machine-calibration"),
    path("sentinels.<str:kind>", machine_pictures.machine_sentinels_picture, name="machine-sentinels"),
    path("state/", machine.change_machine_state, name="machine-state"),
]
SHARED = [
    path("", shared_pictures.shared_page, name="shared-page"),
    path("badge.svg", shared_pictures.shared_badge, name="shared-badge"),
    path("picture.<str:kind>", shared_pictures.shared_picture, name="shared-picture"),
    path("step.png", step_picture.step_picture, name="step-picture"),
]
# In groups: Django tries one pattern after the other, and an address is looked up at each request.
urlpatterns = [
    path("", overview.overview_page, name="overview"),
    path("search/", search.search_page, name="search"),
    path("queue/", queue.queue_page, name="queue"),
    path("work/", overview.active_runs_fragment, name="work"),
    path("claims/<int:pk>/", claims.claim_page, name="claim"),
    path("claims/<int:pk>/picture.<str:kind>", chart_pictures.claim_history_picture, name="claim-picture"),
    path("audit/", audit.site_audit_page, name="site-audit"),
    path("site/accounts/", site_accounts.accounts_page, name="site-accounts"),
    path("site/accounts/<int:pk>/", site_accounts.account_page, name="site-account"),
    path("site/jobs/", site_jobs.jobs_page, name="site-jobs"),
    path("regressions/", inbox.regressions_page, name="regressions"),
    path("machines/", machines.machines_page, name="machines"),
    path("machines/codes/", machines.make_join_code, name="machine-code"),
    path("deliveries/", deliveries.deliveries_page, name="deliveries"),
    path("deliveries/<int:pk>/resend/", deliveries.resend_delivery, name="delivery-resend"),
    # Before the projects: none is called new.
    path("projects/new/", include(NEW_PROJECT)),
    path("projects/<slug:slug>/", include(PROJECT)),
    path("series/<int:pk>/", include(SERIES)),
    path("runs/<int:pk>/", include(RUN)),
    path("regressions/<int:pk>/", include(REGRESSION)),
    path("experiments/<int:pk>/", include(EXPERIMENT)),
    path("checks/<int:pk>/", include(CHECK)),
    path("machines/<int:pk>/", include(MACHINE)),
    path("pictures/<str:token>/", include(SHARED)),
]
