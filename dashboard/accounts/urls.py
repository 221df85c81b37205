"""Where one signs in and looks after an account. The long names are those that allauth has for its pages."""

from django.urls import path, re_path
from django.views.generic import RedirectView

from dashboard.accounts import openid, views

urlpatterns = [
    path("sign-in/", views.sign_in, name="sign-in"),
    path("sign-in/", views.sign_in, name="account_login"),
    path("sign-out/", views.sign_out, name="sign-out"),
    path("sign-out/", views.sign_out, name="account_logout"),
    path("sign-in/code/", views.enter_code, name="mfa_authenticate"),
    path("sign-in/provider/", openid.start_sign_in, name="openid_connect_login"),
    path("sign-in/provider/answer/", openid.take_answer, name="openid_connect_callback"),
    path("account/", views.account_page, name="account"),
    path("account/", views.account_page, name="socialaccount_connections"),
    path("account/inactive/", views.inactive, name="account_inactive"),
    path("account/password/", views.change_password, name="account_change_password"),
    path("account/password/first/", views.refuse_first_password, name="account_set_password"),
    path("account/password/reset/", views.reset_password, name="account_reset_password"),
    path("account/password/reset/sent/", views.reset_sent, name="account_reset_password_done"),
    path(
        "account/password/new/done/",
        RedirectView.as_view(pattern_name="sign-in"),
        name="account_reset_password_from_key_done",
    ),
    re_path(
        r"^account/password/new/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>.+)/$",
        views.set_password,
        name="account_reset_password_from_key",
    ),
    path("account/confirm/", views.confirm_password, name="account_reauthenticate"),
    path("account/confirm/code/", views.confirm_code, name="mfa_reauthenticate"),
    path("account/second-factor/", views.second_factor_page, name="mfa_index"),
    path("account/second-factor/set-up/", views.set_up_app, name="mfa_activate_totp"),
    path("account/second-factor/remove/", views.remove_app, name="mfa_deactivate_totp"),
    path("account/recovery-codes/", views.show_recovery_codes, name="mfa_view_recovery_codes"),
    path("account/recovery-codes/new/", views.renew_recovery_codes, name="mfa_generate_recovery_codes"),
    path(
        "account/recovery-codes/download/", views.download_recovery_codes, name="mfa_download_recovery_codes"
    ),
    path("account/sessions/", views.end_other_sessions, name="usersessions_list"),
]
