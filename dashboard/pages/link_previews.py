"""What a chat shows of a page whose address is posted there: title, sentence, and a picture where one is."""

from __future__ import annotations

from django.conf import settings
from django.urls import reverse

from dashboard.models import Project
from dashboard.pictures import Subject, describe_subject
from dashboard.pictures.drawing import project_of


def preview_of(subject: Subject) -> dict[str, str]:
    """What a chat shows of the address of a public page; empty of a private one, which it can't read."""
    title, sentence = describe_subject(subject)
    name = subject._meta.model_name
    image = reverse(f"{name}-picture", args=[subject.pk, "png"])
    return preview_of_page(project_of(subject), subject.get_absolute_url(), title, sentence, image)


def preview_of_page(
    project: Project, address: str, title: str, sentence: str, image: str = ""
) -> dict[str, str]:
    """As `preview_of`, of any page. The addresses are paths; without `image` there is no picture."""
    if project.visibility != Project.Visibility.PUBLIC:
        return {}
    return {
        "title": title,
        "sentence": sentence,
        "url": settings.PACELINE_URL + address,
        "image": settings.PACELINE_URL + image if image else "",
    }
