from django.urls import path

from dashboard.api import description, host_git, hosts
from dashboard.api.site_api import api_patterns

urlpatterns = [
    path("openapi.json", description.answer_description, name="api-description"),
    path("docs", description.docs_page, name="api-docs"),
    *api_patterns(),
    path("host/join", hosts.join_host, name="host-join"),
    path("host/register", hosts.register_host, name="host-register"),
    path("host/heartbeat", hosts.keep_heartbeat, name="host-heartbeat"),
    path("host/stopping", hosts.release_work, name="host-stopping"),
    path("host/claim", hosts.claim_work, name="host-claim"),
    path("host/bring-commit", hosts.bring_commit, name="host-bring-commit"),
    path("host/runs/advance", hosts.advance_run, name="host-run-advance"),
    path("host/runs/heartbeat", hosts.heartbeat_run, name="host-run-heartbeat"),
    path("host/runs/fail", hosts.fail_run, name="host-run-fail"),
    path("host/runs/document", hosts.store_document, name="host-run-document"),
    path("host/experiments/heartbeat", hosts.heartbeat_experiment, name="host-experiment-heartbeat"),
    path("host/experiments/pair", hosts.add_pair, name="host-experiment-pair"),
    path("host/experiments/profiles", hosts.keep_profiles, name="host-experiment-profiles"),
    path("host/experiments/conclude", hosts.conclude_experiment, name="host-experiment-conclude"),
    path("host/git/<slug:slug>.git/info/refs", host_git.advertise_refs, name="host-git-refs"),
    path("host/git/<slug:slug>.git/git-upload-pack", host_git.upload_pack, name="host-git-upload-pack"),
]
