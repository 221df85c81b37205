from __future__ import annotations


class ExperimentError(Exception):
    """The experiment can't be asked for: one sentence for people, about what they wrote into `field`.

    The fields are those of EstimateRequest; `project` where no field is to blame.
    """

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(f"{field.replace('_', ' ')}: {sentence}")
        self.field = field
        self.sentence = sentence
