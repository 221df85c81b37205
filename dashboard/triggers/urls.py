from django.urls import path

from dashboard.triggers import hook, web

urlpatterns = [
    path("hooks/<slug:slug>/", hook.hook, name="hook"),
    path("projects/<slug:slug>/trigger/", web.trigger, name="trigger"),
]
