"""The site's settings. What an operator may change is an environment variable: see docs/operations.md."""

from __future__ import annotations

import socket
from pathlib import Path

from dashboard.accounts.openid_settings import read_openid_settings
from dashboard.environment_variables import (
    database_settings,
    email_settings,
    is_loopback_site,
    read_boolean,
    read_choice,
    read_folder,
    read_integer,
    read_list,
    read_name,
    read_networks,
    read_site_url,
    read_text,
    read_url,
    site_host,
)
from dashboard.garbage_collection import collect_rarely
from dashboard.secrets.keys import read_earlier_keys, read_or_make_key
from dashboard.services import last_port, service_addresses
from dashboard.structured_logs import FORMATS, logging_settings
from dashboard.throttling.rates import DEFAULT_RATES, parse_rates

BROKER_SCHEMES = ("redis", "rediss", "redis+socket", "amqp", "amqps")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

# First: each process of the site reads the settings before it imports the rest.
collect_rarely()

CHECKOUT = Path(__file__).resolve().parent.parent
PACELINE_HOME = read_folder("PACELINE_HOME", CHECKOUT / ".paceline")


SECRET_KEY = read_text("SECRET_KEY") or read_or_make_key(PACELINE_HOME)
# What an earlier key signed or encrypted is still read.
SECRET_KEY_FALLBACKS = read_list("SECRET_KEY_FALLBACKS") or read_earlier_keys(PACELINE_HOME)
DEBUG = read_boolean("DEBUG")

PORT = read_integer("PORT", last_port(PACELINE_HOME), least=1, most=65535)
PACELINE_HOST = read_text("PACELINE_HOST", "127.0.0.1")
PACELINE_URL = read_site_url("PACELINE_URL", f"http://127.0.0.1:{PORT}")
PACELINE_POOL = read_name("PACELINE_POOL", "default", most=60)
PACELINE_MACHINE = read_name("PACELINE_MACHINE", socket.gethostname(), most=120)
PACELINE_LEASE_SECONDS = read_integer("PACELINE_LEASE_SECONDS", 60, least=2)
PACELINE_HEARTBEAT_FILE = read_text("PACELINE_HEARTBEAT_FILE")
# How much of the pages that it has made each web process keeps; 0: nothing.
PACELINE_PAGE_MEMORY_MB = read_integer("PACELINE_PAGE_MEMORY_MB", 64)
# Off behind a pooler that hands each transaction another connection.
PACELINE_PREPARED_STATEMENTS = read_boolean("PACELINE_PREPARED_STATEMENTS", default=True)
# How long a web process waits for a database that is silent.
PACELINE_DATABASE_WAIT_SECONDS = read_integer("PACELINE_DATABASE_WAIT_SECONDS", 30, least=1, most=3_600)
# Where web processes hand each other the pages that they made last.
HANDED_PAGES = PACELINE_HOME / "pages"
# What manifests and pushes may ask for at most.
PACELINE_MOST_SECONDS = read_integer("PACELINE_MOST_SECONDS", 86_400, least=1)
PACELINE_MOST_REPETITIONS = read_integer("PACELINE_MOST_REPETITIONS", 100, least=1)
PACELINE_MOST_CASES = read_integer("PACELINE_MOST_CASES", 500, least=1)
PACELINE_MOST_RUNS = read_integer("PACELINE_MOST_RUNS", 5_000, least=1)
PACELINE_MOST_WAITING = read_integer("PACELINE_MOST_WAITING", 20_000, least=1)
PACELINE_MOST_SERIES = read_integer("PACELINE_MOST_SERIES", 5_000, least=1)
# How many days runs keep what is large; 0 is for ever.
PACELINE_KEEP_LOGS_DAYS = read_integer("PACELINE_KEEP_LOGS_DAYS", 180)
PACELINE_KEEP_TELEMETRY_DAYS = read_integer("PACELINE_KEEP_TELEMETRY_DAYS", 180)
PACELINE_KEEP_PROFILES_DAYS = read_integer("PACELINE_KEEP_PROFILES_DAYS", 730)
PACELINE_KEEP_DOCUMENTS_DAYS = read_integer("PACELINE_KEEP_DOCUMENTS_DAYS", 0)
PACELINE_KEEP_POINTS_DAYS = read_integer("PACELINE_KEEP_POINTS_DAYS", 0)
# What the policies of projects may say instead; 0 is no bound.
PACELINE_KEEP_LEAST_DAYS = read_integer("PACELINE_KEEP_LEAST_DAYS", 30)
PACELINE_KEEP_MOST_DAYS = read_integer("PACELINE_KEEP_MOST_DAYS", 0)
PACELINE_ALLOW_INTERNAL_WEBHOOKS = read_boolean("PACELINE_ALLOW_INTERNAL_WEBHOOKS")
PACELINE_ALLOW_INTERNAL_FORGES = read_boolean("PACELINE_ALLOW_INTERNAL_FORGES")
PACELINE_ALLOW_INTERNAL_REPOSITORIES = read_boolean("PACELINE_ALLOW_INTERNAL_REPOSITORIES")
ALLOWED_HOSTS = [
    *read_list("ALLOWED_HOSTS", "*" if DEBUG else f"127.0.0.1,localhost,[::1],{site_host(PACELINE_URL)}"),
    # The host beside the site, whatever people may use.
    "127.0.0.1",
]
CSRF_TRUSTED_ORIGINS = [PACELINE_URL]

_embedded = service_addresses(PACELINE_HOME)
DATABASES = {"default": database_settings(read_text("DATABASE_URL", _embedded.database_url))}
BROKER_URL = read_url("BROKER_URL", _embedded.broker_url, BROKER_SCHEMES)
# Where hosts are woken; one that can't reach it asks for work by itself.
PACELINE_HOSTS_BROKER_URL = read_url("PACELINE_HOSTS_BROKER_URL", BROKER_URL, BROKER_SCHEMES)

# Of whom it is believed which client a request is from, as gunicorn believes of these which scheme it had.
FORWARDED_ALLOW_IPS = read_networks("FORWARDED_ALLOW_IPS", "127.0.0.1,::1")
PACELINE_RATES = parse_rates("PACELINE_RATES", read_list("PACELINE_RATES"), DEFAULT_RATES)
PACELINE_LONGEST_SIGN_IN_DELAY = read_integer("PACELINE_LONGEST_SIGN_IN_DELAY", 900, least=1, most=86_400)
# In Postgres: all web processes share it, and nothing more has to run for it.
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "dashboard_cache"}
}

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "django_htmx",
    "dashboard",
]

MIDDLEWARE = [
    # First: what the others log and answer has the request's id too.
    "dashboard.structured_logs.identify_requests",
    "dashboard.middleware.client_addresses.name_clients",
    # Before what answers by itself: files and refusals have the headers too.
    "dashboard.middleware.browser_security.restrict_browsers",
    "django.middleware.security.SecurityMiddleware",
    "dashboard.middleware.readable_requests.refuse_unreadable_requests",
    "dashboard.static_files.serving.ServeStaticFiles",
    "dashboard.middleware.compression.CompressPages",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    # Before the one below: it says which requests bear a token and need no CSRF cookie.
    "dashboard.middleware.access.AccessMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "dashboard.middleware.limited_requests.LimitRequests",
    "dashboard.accounts.second_factors.RequireSecondFactors",
    # Last: a cached page is answered to whom the others let pass.
    "dashboard.middleware.page_caching.CachePages",
]

CSRF_FAILURE_VIEW = "dashboard.error_pages.show_forged_request"
ROOT_URLCONF = "dashboard.urls"
WSGI_APPLICATION = "dashboard.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [CHECKOUT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "overview"

# A link to set a password is good for a day.
PASSWORD_RESET_TIMEOUT = 86_400

ACCOUNT_ADAPTER = "dashboard.accounts.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
# Of the form to sign up, which there isn't.
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_UNIQUE_EMAIL = False
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_EMAIL_SUBJECT_PREFIX = "Paceline: "
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = 900
# dashboard.throttling counts instead.
ACCOUNT_RATE_LIMITS = False

MFA_ADAPTER = "dashboard.accounts.adapters.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "Paceline"
# Clocks of phones are off by some seconds: the code before and the code after are right too.
MFA_TOTP_TOLERANCE = 1
# Accounts are made by administrators, who vouch for the address.
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_FORMS = {
    "authenticate": "dashboard.accounts.forms.DelayedAuthenticateForm",
    "reauthenticate": "dashboard.accounts.forms.DelayedReauthenticateForm",
    "activate_totp": "dashboard.accounts.forms.DelayedActivateForm",
}
PACELINE_REQUIRE_SECOND_FACTOR = read_choice(
    "PACELINE_REQUIRE_SECOND_FACTOR",
    "none" if is_loopback_site(PACELINE_URL, PACELINE_HOST) else "admins",
    ("admins", "all", "none"),
)

SOCIALACCOUNT_ADAPTER = "dashboard.accounts.openid_people.ProviderAdapter"
SOCIALACCOUNT_REAUTHENTICATION_REQUIRED = True
PACELINE_OIDC = read_openid_settings()

LANGUAGE_CODE = "en-us"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "static/"
# Files are served out of the apps' folders: there is no collectstatic step to forget.
WHITENOISE_USE_FINDERS = True
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "dashboard.static_files.finders.HashedNamesFinder",
]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "dashboard.static_files.storage.HashedFilesStorage"},
}

DEFAULT_FROM_EMAIL = read_text("DEFAULT_FROM_EMAIL", "paceline@localhost")
globals().update(email_settings(read_text("EMAIL_URL", "console:")))
# Of a changed password or second factor the account is notified.
ACCOUNT_EMAIL_NOTIFICATIONS = read_text("EMAIL_URL", "console:") != "console:"

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PACELINE_URL.startswith("https://")
# A browser takes a cookie of such a name from this very host alone, over TLS: no neighbour can set it.
_cookie_prefix = "__Host-" if SESSION_COOKIE_SECURE else ""
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"{_cookie_prefix}sessionid", f"{_cookie_prefix}csrftoken"
PACELINE_BROWSER_COOKIE_NAME = f"{_cookie_prefix}knownbrowser"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
# Lax: who follows a link in a mail is signed in, and an OpenID provider's answer finds its session.
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 86_400 * read_integer("PACELINE_SESSION_DAYS", 14, least=1, most=400)
# Not in a cookie of their own.
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
# With answers over TLS alone: gunicorn knows it from the proxy, if FORWARDED_ALLOW_IPS names that one.
SECURE_HSTS_SECONDS = read_integer("PACELINE_HSTS_SECONDS", 2_592_000 if SESSION_COOKIE_SECURE else 0)
# Of a form, with its files.
DATA_UPLOAD_MAX_MEMORY_SIZE = FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
FILE_UPLOAD_HANDLERS = ["dashboard.middleware.bounded_uploads.BoundedUploadHandler"]

LOGGING = logging_settings(
    read_choice("LOG_LEVEL", "INFO", LOG_LEVELS), read_choice("PACELINE_LOG_FORMAT", "line", FORMATS)
)
