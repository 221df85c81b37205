"""Addresses that are put together once say what Django's `reverse` says."""

from __future__ import annotations

import pytest
from django.urls import NoReverseMatch, reverse, set_script_prefix

from dashboard.page_addresses import page_address


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("run", (12,)),
        ("commit", ("some-project", "a1b2c3d4")),
        ("benchmark-claims", ("some-project", "a b?")),
        ("benchmark-claims", ("some-project", "käse")),
        ("project", ("some-project",)),
    ],
)
def test_it_is_what_django_says(name, arguments):
    assert page_address(name, *arguments) == reverse(name, args=arguments)


def test_a_site_below_a_path_has_its_own_addresses():
    before = page_address("run", 12)
    set_script_prefix("/paceline/")
    try:
        assert page_address("run", 12) == "/paceline" + before
    finally:
        set_script_prefix("/")


def test_what_has_no_number_has_no_address():
    with pytest.raises(NoReverseMatch):
        page_address("run", None)
