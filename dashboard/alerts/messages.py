"""One message, the same for all kinds of channels; each kind's file only lays it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.conf import settings

from dashboard.alerts import digest_content, pictures
from dashboard.models import ClaimMeasurement, Delivery, Regression
from dashboard.querysets.regression_details import times_beside_counter
from dashboard.sentences.comparisons import claims as claim_sentences
from dashboard.sentences.measurements import device_time
from dashboard.sentences.regressions import alerts as sentences
from dashboard.sentences.regressions import proofs

# How a message looks: its colour, and an incident's severity.
WORSE, BETTER, NEUTRAL = "worse", "better", "neutral"
COLOURS = {WORSE: 0xC0392B, BETTER: 0x2E8B57, NEUTRAL: 0x57606A}
_TONES = {
    Delivery.Event.RECOVERED: BETTER,
    Delivery.Event.WITHDRAWN: NEUTRAL,
    Delivery.Event.CLOSED: NEUTRAL,
    Delivery.Event.DIGEST: NEUTRAL,
    Delivery.Event.TEST: NEUTRAL,
    Delivery.Event.CLAIM_HOLDS: BETTER,
}
# Events of a regression that is there: their message shows the step.
ONGOING_EVENTS = (
    Delivery.Event.OPENED,
    Delivery.Event.CONFIRMED,
    Delivery.Event.REOPENED,
    Delivery.Event.REMINDER,
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a list, with an address where it leads somewhere."""

    text: str
    url: str = ""

    @classmethod
    def flat(cls, text: str, url: str = "") -> Line:
        return cls(flat_text(text), url)


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    lines: tuple[Line, ...]
    # Their order says something.
    ranked: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """The message to a channel. `topic` is the same for all messages about one regression.

    `picture` is an address that shows the step for a while, empty where nobody outside could fetch it.
    """

    event: str
    topic: str
    tone: str
    project: str
    title: str
    subject: str
    sentence: str
    link: Line
    facts: tuple[tuple[str, str], ...] = ()
    sections: tuple[Section, ...] = ()
    picture: str = ""
    picture_text: str = ""

    @property
    def colour(self) -> int:
        return COLOURS[self.tone]

    @property
    def plain_text(self) -> str:
        """All of it but the facts, without any markup."""
        lists = [f"{section.title}:\n" + "\n".join(_plain_lines(section)) for section in self.sections]
        return "\n\n".join([self.title, self.sentence, *lists, self.link.url])


def _plain_lines(section: Section) -> list[str]:
    return [f"  {line.text}" + (f" {line.url}" if line.url else "") for line in section.lines]


def compose_message(delivery: Delivery) -> Message:
    if delivery.event == Delivery.Event.TEST:
        return _test_message(delivery)
    if delivery.claim_measurement is not None:
        return _claim_message(delivery.event, delivery.claim_measurement)
    if delivery.event == Delivery.Event.DIGEST or delivery.regression is None:
        return _digest_message(delivery)
    return _regression_message(delivery, delivery.regression)


def _regression_message(delivery: Delivery, regression: Regression) -> Message:
    event = delivery.event
    pictured = event in ONGOING_EVENTS and delivery.channel.pictures
    suspects = tuple(Line.flat(text) for text in sentences.suspect_lines(regression))
    operations = tuple(Line.flat(text) for text in sentences.operation_lines(regression))
    kernels = tuple(Line.flat(text) for text in device_time.kernel_lines(regression))
    sections = (
        Section("Suspects, likeliest first", suspects, ranked=True),
        Section("Tensor operations that grew", operations),
        Section("Kernels of the device that grew", kernels),
    )
    is_ongoing = event in ONGOING_EVENTS
    facts = [*sentences.message_facts(regression), *sentences.memory_fact(regression)]
    if time := time_beside_counter(regression, event):
        facts.append(("step time", time))
    return Message(
        event=event,
        topic=f"regression-{regression.pk}",
        tone=_TONES.get(Delivery.Event(event), WORSE),
        project=regression.project.slug,
        title=flat_text(sentences.message_title(regression, event)),
        subject=flat_text(sentences.message_subject(regression, event)),
        sentence=flat_text(sentences.message_sentence(regression, event)),
        link=Line("The regression, with its evidence", regression_url(regression)),
        facts=tuple((name, flat_text(text)) for name, text in facts),
        sections=tuple(section for section in sections if section.lines) if is_ongoing else (),
        picture=pictures.picture_url(regression) if pictured else "",
        picture_text=sentences.picture_text(regression) if pictured else "",
    )


def time_beside_counter(regression: Regression, event: str) -> str:
    """What became of a step's time where a counter alone moved; empty where that is reported, isn't known, or
    where the regression is over."""
    return proofs.step_time_sentence(times_beside_counter(regression)) if event in ONGOING_EVENTS else ""


def _claim_message(event: str, measurement: ClaimMeasurement) -> Message:
    return Message(
        event=event,
        topic=f"claim-{measurement.claim_id}",
        tone=_TONES.get(Delivery.Event(event), WORSE),
        project=measurement.claim.project.slug,
        title=flat_text(claim_sentences.claim_title(measurement, event)),
        subject=flat_text(claim_sentences.claim_subject(measurement, event)),
        sentence=flat_text(claim_sentences.claim_sentence(measurement, event)),
        link=Line("The claim, over commits", claim_url(measurement)),
        facts=tuple((name, flat_text(text)) for name, text in claim_sentences.claim_facts(measurement)),
    )


def _digest_message(delivery: Delivery) -> Message:
    project = delivery.channel.project
    groups = digest_content.group_regressions(delivery)
    claims = _claim_lines(delivery)
    counts = [(name.lower(), len(rows)) for name, rows in groups]
    counts.append(("claim" if len(claims) == 1 else "claims", len(claims)))
    title = sentences.digest_title(project.slug, counts)
    sections = tuple(Section(name, _regression_lines(rows)) for name, rows in groups if rows)
    if claims:
        sections = (*sections, Section("Claims", claims))
    return Message(
        event=delivery.event,
        topic=f"digest-{delivery.pk}",
        tone=NEUTRAL,
        project=project.slug,
        title=title,
        subject=f"[{project.slug}] {title}",
        sentence="What has happened since the last digest, and what waits for triage.",
        link=Line("The project", settings.PACELINE_URL + project.get_absolute_url()),
        sections=sections,
    )


def _claim_lines(digest: Delivery) -> tuple[Line, ...]:
    """What claims were collected to tell, in the order in which it came."""
    return tuple(
        Line.flat(claim_sentences.claim_sentence(measurement, event), claim_url(measurement))
        for event, measurement in digest_content.collected_claims(digest)
    )


def _regression_lines(rows: Sequence[Regression]) -> tuple[Line, ...]:
    return tuple(Line.flat(sentences.short_line(row), regression_url(row)) for row in rows)


def _test_message(delivery: Delivery) -> Message:
    project = delivery.channel.project
    return Message(
        event=delivery.event,
        topic=f"test-{delivery.pk}",
        tone=NEUTRAL,
        project=project.slug,
        title=f"{sentences.TEST_TITLE} from {project.slug}",
        subject=f"[{project.slug}] {sentences.TEST_TITLE}",
        sentence=sentences.sentence_of_test(project.slug),
        link=Line("The project", settings.PACELINE_URL + project.get_absolute_url()),
    )


def regression_url(regression: Regression) -> str:
    return settings.PACELINE_URL + regression.get_absolute_url()


def claim_url(measurement: ClaimMeasurement) -> str:
    return settings.PACELINE_URL + measurement.claim.get_absolute_url()


def flat_text(text: str) -> str:
    """On one line: a commit's subject or author may hold more, and a mail's header must not."""
    return " ".join(text.split())


def keep_text(letter: str) -> str:
    return letter


def fit_text(text: str, most: int, escape: Callable[[str], str] = keep_text) -> str:
    """The text, each letter escaped, cut where it would be longer than `most`: never within an escape.

    Letters outside the Basic Multilingual Plane count as two, as services that count UTF-16 do.
    """
    pieces: list[str] = []
    size = 0
    lengths = [_utf16_length(escape(letter)) for letter in text]
    fits = sum(lengths) <= most
    for letter, length in zip(text, lengths, strict=True):
        if not fits and size + length > most - 1:
            return "".join(pieces).rstrip() + "…"
        pieces.append(escape(letter))
        size += length
    return "".join(pieces)


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def escape_marks(marks: str) -> Callable[[str], str]:
    """An escape that puts a backslash before each of the marks."""
    return lambda letter: f"\\{letter}" if letter in marks else letter
