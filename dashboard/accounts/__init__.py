"""Accounts: how one signs in, with a password or by an OpenID provider, and with a second factor.

django-allauth does the work; `adapters` says what it may do here, `urls` where its pages are, and `openid`
what it doesn't check by itself. No account is made but by an administrator or by the provider.
"""
