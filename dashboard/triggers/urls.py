from django.urls import path

from dashboard.triggers import hook, web

urlpatterns = [
    path("hooks/<slug:slug>/", hook.receive_hook, name="hook"),
    path("projects/<slug:slug>/trigger/", web.request_runs, name="trigger"),
]
