"""Commits that touch nothing but comments: what is measured before and after them is the same program."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from ..edits import Change, lines_before
from .accidents import revert_change

# A file, a line of it, and what is said above that line.
REMARKS = (
    ("train.py", "EXPLORATION_STEPS = 200", "Found by trying."),
    ("train.py", "        torch.manual_seed(seed)", "The network's first parameters come from here."),
    ("train.py", "        self.batch_size = batch_size", "An update learns from as many."),
    ("train.py", "        self.game = Snake(seed)", "One game at a time."),
    ("train.py", "        self.agent = Agent()", "On the processor: the network is small."),
    ("train.py", "        self.view = self.game.view()", "What the first action is chosen by."),
    ("train.py", "            action = self.act(number)", "Nothing is learned from this view yet."),
    ("train.py", "            return self.random.randrange(ACTIONS)", "All actions are alike."),
    ("train.py", "            batch = as_tensors(transitions)", "Copied once."),
    ("train.py", "            targets = self.agent.targets(batch)", "Before the parameters move."),
    ("train.py", "            self.agent.learn(batch, targets)", "One update for every decision."),
    ("train.py", "        digest = hashlib.sha256()", "Two trainings are alike if this is."),
    ("train.py", "    args = parser.parse_args()", "Wrong ones end it here."),
    ("train.py", "    torch.set_num_threads(1)", "More threads are slower on matrices of this size."),
    ("model.py", "HIDDEN = 64", "Twice as many learn no better."),
    ("model.py", "LEARNING_RATE = 3e-4", "The usual one."),
    ("model.py", "            nn.Linear(VIEW * VIEW, HIDDEN),", "Nearly all parameters are in this layer."),
    ("model.py", "            nn.Linear(HIDDEN, ACTIONS),", "Values, so nothing bounds them."),
    ("model.py", "        with torch.inference_mode():", "Nothing is learned while acting."),
    ("model.py", "        with torch.no_grad():", "Targets are what is aimed at."),
    ("model.py", "        wanted = []", "A value for each row."),
    ("model.py", "        return torch.stack(wanted)", "In the order of the batch."),
    ("model.py", "        self.optimizer.zero_grad()", "They would add up."),
    ("model.py", "        loss.backward()", "Most of a step's time."),
    ("replay.py", "CAPACITY = 10_000", "Some hundred games."),
    ("replay.py", "        self.random = random.Random(seed)", "Draws of its own, whatever else is drawn."),
    ("replay.py", "        self.transitions.append(transition)", "The oldest one is forgotten."),
    ("replay.py", '        return ", ".join(parts)', "For people."),
    ("tensors.py", "    rows = views + next_views", "One array for both."),
    ("tensors.py", "    return Batch(", "Views are parts of one tensor."),
)


def comment_changes() -> Iterator[Change]:
    """One remark after the other; after the last one they are taken back in the same order, and so on."""
    written = [
        Change(f"Say in {path}: {text}", (lines_before(path, line, comment_at(line, text)),))
        for path, line, text in REMARKS
    ]
    yield from cycle([*written, *(revert_change(change) for change in written)])


def comment_at(line: str, text: str) -> str:
    """The comment, as far to the right as its line."""
    return f"{line[: len(line) - len(line.lstrip())]}# {text}"
