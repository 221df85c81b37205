"""Commits that touch nothing but comments in one benchmark of the history `distributed`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from ..edits import Change, Edit
from .accidents import revert_change
from .comments import comment_at

# By benchmark: a file, a line of it, and what is said above that line.
REMARKS = {
    "sequences": (
        ("train.py", "WIDTH = 64", "As wide as the words are many, nearly."),
        ("train.py", "    torch.set_num_threads(1)", "A rank has a processor of its own."),
        ("train.py", '    dist.init_process_group("gloo")', "Works without a device."),
        ("train.py", "        optimizer.zero_grad()", "They would add up."),
        ("batches.py", "LENGTH = 32", "Longer ones learn no better."),
    ),
    "images": (
        ("train.py", "ROWS = 32", "What both workers read in a moment."),
        ("train.py", "            nn.Flatten(),", "Behind it places don't count."),
        ("train.py", "        self.optimizer.zero_grad()", "They would add up."),
        ("train.py", "    torch.set_num_threads(1)", "The other processor is for the workers."),
        ("pictures.py", "FILES = 64", "As many as fit into memory."),
    ),
    "classify": (
        ("train.py", "EVALUATED_EVERY = 40", "Often enough to see it learn."),
        ("train.py", "        self.model = Classifier()", "The compiled one shares its parameters."),
        ("train.py", "        inputs, labels = self.examples.draw()", "Drawn anew at every step."),
        ("train.py", "        self.optimizer.zero_grad()", "They would add up."),
        ("train.py", "    torch.set_num_threads(1)", "More are slower at this width."),
        ("model.py", "WIDTH = 256", "Twice as many learn no better."),
        ("model.py", "        hidden = self.first(inputs)", "What the layers add to."),
        ("examples.py", "ROWS = 64", "Of one batch."),
    ),
    "signals": (
        ("train.py", "MICROPHONES = 3", "As many as the room has."),
        ("train.py", "        self.model = Denoiser()", "Small: it has to keep up."),
        ("train.py", "        said = self.model(recorded[rows][:, None])", "One channel."),
        ("train.py", "        self.optimizer.zero_grad()", "They would add up."),
        ("denoiser.py", "WIDTH = 8", "Twice as many hear no better."),
    ),
}


def remark_changes(benchmark: str) -> Iterator[Change]:
    """One remark after the other; after the last one they are taken back in the same order, and so on."""
    written = [
        Change(
            f"Say in {benchmark}/{path}: {text}",
            (Edit(f"{benchmark}/{path}", f"{line}\n", f"{comment_at(line, text)}\n{line}\n"),),
        )
        for path, line, text in REMARKS[benchmark]
    ]
    yield from cycle([*written, *(revert_change(change) for change in written)])
