"""What the pages of comparisons say: `{% load comparisons %}`."""

from __future__ import annotations

from django import template

from dashboard.sentences.comparisons import comparisons

register = template.Library()

for sentence_filter in (
    comparisons.effect_size,
    comparisons.effect_text,
    comparisons.metric_row_label,
    comparisons.newer_sentence,
    comparisons.obstacle_text,
    comparisons.pooled_sentence,
    comparisons.reason_text,
    comparisons.run_title,
    comparisons.side_words,
    comparisons.summary_text,
    comparisons.what_label,
):
    register.filter(sentence_filter.__name__, sentence_filter)
