"""Commits that cost nothing: what an ordinary week of work looks like between the planted ones."""

from __future__ import annotations

from .edits import Change, Edit, after, before

FIRST = "Train a DQN on Snake"

README = """# Snake

A small DQN that learns Snake from its surroundings, turned to its heading.

    python train.py --steps 20000
"""

NOTES = """# Notes

- The discount is low on purpose: a snake that looks too far ahead starves.
- Exploration ends early; the game is random enough.
"""

TEST = '''"""The memory forgets the oldest first."""

from replay import CAPACITY, Replay, Transition


def test_the_memory_forgets_the_oldest():
    replay = Replay(seed=0)
    for number in range(CAPACITY + 1):
        replay.push(Transition(None, number, 0.0, None, False))
    assert len(replay) == CAPACITY
    assert replay.transitions[0].action == 1
'''

LAYERS = """        self.network = nn.Sequential(
            nn.Linear(VIEW * VIEW, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(inplace=True),
            nn.Linear(HIDDEN, ACTIONS),
        )
"""

LAYERS_FUNCTION = '''def layers(*sizes: int) -> nn.Sequential:
    """Linear layers of these sizes, with a ReLU between each two."""
    built: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        built += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*built[:-1])


class Agent:
'''

BEST_ACTION = '''    def best_action(self, view: View) -> int:
        """Return the action of the highest value."""
        with torch.inference_mode():
            return int(self.network(torch.from_numpy(view)).argmax())
'''

GREEDY_ACTION = '''    def values(self, view: View) -> torch.Tensor:
        """Return what each action is worth."""
        return self.network(torch.from_numpy(view))

    def greedy_action(self, view: View) -> int:
        """Return the action of the highest value."""
        with torch.inference_mode():
            return int(self.values(view).argmax())
'''

EXPLORATION = """        exploration = max(EXPLORATION, 1 - number / EXPLORATION_STEPS)
        if self.random.random() < exploration:
"""

EXPLORATION_FUNCTION = '''def exploration_at(number: int) -> float:
    """Return the share of random actions at this step."""
    return max(EXPLORATION, 1 - number / EXPLORATION_STEPS)


def main() -> None:
'''

RENAMING = (
    Change(
        "Name the exploration schedule",
        (
            Edit("train.py", EXPLORATION, "        if self.random.random() < exploration_at(number):\n"),
            Edit("train.py", "def main() -> None:\n", EXPLORATION_FUNCTION),
            Edit(
                "train.py",
                "    def act(self, number: int) -> int:\n",
                "    def decide(self, number: int) -> int:\n",
            ),
            Edit(
                "train.py",
                "            action = self.act(number)\n",
                "            action = self.decide(number)\n",
            ),
        ),
    ),
    Change(
        "Call the best action greedy and expose the values",
        (
            Edit("model.py", BEST_ACTION, GREEDY_ACTION),
            Edit("train.py", "self.agent.best_action(", "self.agent.greedy_action("),
        ),
    ),
)
"""The two that add and rename functions that every step calls."""

OTHERS = (
    Change("Describe the trainer", (Edit("README.md", "", README),)),
    Change("Ignore caches", (Edit(".gitignore", "", "__pycache__/\n*.pt\n"),)),
    Change("Write down what we learned", (Edit("docs/notes.md", "", NOTES),)),
    Change("Test the memory", (Edit("tests/test_replay.py", "", TEST),)),
    Change(
        "Complete the type hints of the memory",
        (Edit("replay.py", "    def __len__(self):\n", "    def __len__(self) -> int:\n"),),
    ),
    Change(
        "Say what the agent doesn't do",
        (
            Edit(
                "model.py",
                '    """The network with its optimizer: acts, and learns from batches."""\n',
                '    """The network with its optimizer: acts, and learns from batches.\n\n'
                '    It has no second network for its targets: the game is simple enough without.\n    """\n',
            ),
        ),
    ),
    Change(
        "Build the layers in a function",
        (
            Edit("model.py", LAYERS, "        self.network = layers(VIEW * VIEW, HIDDEN, HIDDEN, ACTIONS)\n"),
            Edit("model.py", "class Agent:\n", LAYERS_FUNCTION),
            before("model.py", "import torch", "from itertools import pairwise", ""),
        ),
    ),
    Change(
        "Say why the view is replaced",
        (
            before(
                "train.py",
                "        self.view = self.game.reset() if ended else next_view",
                "        # The view of a finished game is never acted on: the next one starts at once.",
            ),
        ),
    ),
    Change(
        "Return early while the memory is short",
        (
            Edit(
                "train.py",
                "        if len(self.replay) >= self.batch_size:\n            self.update()\n",
                "        if len(self.replay) < self.batch_size:\n            return\n        self.update()\n",
            ),
        ),
    ),
    Change(
        "Explain every argument",
        (
            Edit("train.py", '"0"))\n', '"0"), help="seed of all that is drawn")\n'),
            Edit("train.py", "default=100_000)\n", 'default=100_000, help="decisions of the snake")\n'),
        ),
    ),
    Change(
        "Explain the constants of the model",
        (
            after("model.py", "HIDDEN = 64", '"""Units in each hidden layer."""', ""),
            after("model.py", "DISCOUNT = 0.9", '"""What a reward is worth one step later."""'),
        ),
    ),
)
