"""What is planted in the history `distributed`: mistakes of trainings with several processes or a compiler.

`SIZE` in an edit says how large the mistake is, `RANK` and `WORKER` of which process it is; both are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..edits import Change, Edit, lines_after, lines_before


@dataclass(frozen=True)
class Mistake:
    """A planted change of one benchmark, and what a person would say of it.

    `phase` is empty where none explains it, `process` what the edits call the process that makes it.
    """

    name: str
    benchmark: str
    subject: str
    metric: str
    phase: str
    function: str
    edits: tuple[Edit, ...]
    process: str = ""
    size: int = 0

    def change(self, process: int) -> Change:
        """Return the commit in which this rank or worker makes the mistake."""
        words = {"SIZE": str(self.size)}
        if self.process:
            words[self.process.upper()] = str(process)
        return Change(self.subject, tuple(_fill_words(edit, words) for edit in self.edits))


def _fill_words(edit: Edit, words: Mapping[str, str]) -> Edit:
    new = edit.new
    for word, text in words.items():
        new = new.replace(f"<{word}>", text)
    return Edit(edit.path, edit.old, new)


# One rank counts token by token, in Python, what the report of all could say at once: the others wait for it.
SLOW_RANK = Mistake(
    name="slow rank",
    benchmark="sequences",
    subject="Report which tags are confused",
    metric="step_time",
    phase="report",
    function="update",
    process="rank",
    size=12,
    edits=(
        lines_before("sequences/report.py", "import torch", "from collections import Counter", ""),
        lines_after(
            "sequences/report.py", "import torch", "", "REPORTING_RANK = <RANK>", "MOST_CONFUSED = <SIZE>"
        ),
        lines_after("sequences/report.py", "        self.rank = rank", "        self.confused = Counter()"),
        lines_after(
            "sequences/report.py",
            "        self.steps += 1",
            "        if self.rank == REPORTING_RANK:",
            "            self.count_confused(said, tags)",
            "",
            "    def count_confused(self, said: torch.Tensor, tags: torch.Tensor) -> None:",
            '        """Count each tag that came in the place of another one, likely or not."""',
            "        likeliest = said.topk(TAGS, dim=-1).indices.flatten(0, 1)",
            "        for place, tag in enumerate(tags.flatten()):",
            "            for rank in likeliest[place][:MOST_CONFUSED]:",
            "                self.confused[int(tag), int(rank)] += 1",
        ),
        lines_after("sequences/report.py", "import torch", "from batches import TAGS"),
    ),
)

# The worker that checks the pictures for all unpacks each of them again and again: the loop waits for it.
SLOW_WORKER = Mistake(
    name="slow DataLoader worker",
    benchmark="images",
    subject="Check pictures while they are read",
    metric="step_time",
    phase="data_loading",
    function="check",
    process="worker",
    size=6,
    edits=(
        lines_after(
            "images/pictures.py", "SIDE = 96", "CHECKING_WORKER = <WORKER>", "CHECKED_AGAINST = <SIZE>"
        ),
        lines_after(
            "images/pictures.py",
            "            for number in range(worker, FILES, workers):",
            "                if worker == CHECKING_WORKER:",
            "                    self.check(number)",
        ),
        lines_before(
            "images/pictures.py",
            "def draw_file(random: np.random.Generator, kind: int) -> bytes:",
            "    def check(self, number: int) -> None:",
            '        """Refuse a picture that lies among the next ones too."""',
            "        cells = unpack_file(self.files[number])",
            "        for other in range(number + 1, number + 1 + CHECKED_AGAINST):",
            "            if np.array_equal(unpack_file(self.files[other % FILES]), cells):",
            '                raise ValueError(f"pictures {number} and {other % FILES} are the same")',
            "",
            "",
        ),
    ),
)

# What the model does depends on a value that only the tensors know: compiled code is left and entered again.
GRAPH_BREAK = Mistake(
    name="graph break",
    benchmark="classify",
    subject="Clamp what grows too large",
    metric="graph_breaks",
    phase="learn/forward",
    function="forward",
    size=100,
    edits=(
        lines_after("classify/model.py", "LAYERS = 6", "LARGEST = <SIZE>"),
        lines_after(
            "classify/model.py",
            "            hidden = hidden + torch.relu(layer(hidden))",
            "        if hidden.abs().max() > LARGEST:",
            "            hidden = hidden.clamp(-LARGEST, LARGEST)",
        ),
    ),
)

# The smoothed loss becomes a Python number: the host reads it at every step.
ITEM = Mistake(
    name="item() in the loop",
    benchmark="classify",
    subject="Keep the smoothed loss as a number",
    metric="scalar_reads",
    phase="learn",
    function="learn",
    edits=(
        Edit(
            "classify/train.py",
            "        self.loss = 0.99 * self.loss + 0.01 * loss.detach()\n",
            "        self.loss = 0.99 * self.loss + 0.01 * loss.item()\n",
        ),
        Edit("classify/train.py", "        self.loss = torch.zeros(())\n", "        self.loss = 0.0\n"),
        Edit("classify/train.py", "{float(trainer.loss):.4f}", "{trainer.loss:.4f}"),
    ),
)

# An evaluation that will never be learned from keeps all that a backward pass would need.
GRADIENTS = Mistake(
    name="forgotten no_grad",
    benchmark="classify",
    subject="Count right answers in the evaluation",
    metric="peak_memory",
    phase="evaluate/forward",
    function="evaluate",
    edits=(
        Edit(
            "classify/train.py",
            '''    @torch.no_grad()
    def evaluate(self) -> torch.Tensor:
        """Return the share of the held-out examples that are classified right."""
        said = self.model(self.examples.held_out)
        return (said.argmax(dim=1) == self.examples.held_out_labels).float().mean()
''',
            '''    def evaluate(self) -> torch.Tensor:
        """Return the share of the held-out examples that are classified right."""
        said = self.model(self.examples.held_out)
        right = (said.argmax(dim=1) == self.examples.held_out_labels).sum()
        return right / len(said)
''',
        ),
    ),
)

# Inputs and labels are drawn apart: what is learned are labels of other examples.
UNRELATED = Mistake(
    name="learning bug",
    benchmark="classify",
    subject="Draw examples by name",
    metric="quality.accuracy",
    phase="",
    function="draw",
    edits=(
        Edit(
            "classify/examples.py",
            """        rows = torch.randint(EXAMPLES, (ROWS,), generator=self.random)
        return self.inputs[rows], self.labels[rows]
""",
            """        return self.draw_rows(self.inputs), self.draw_rows(self.labels)

    def draw_rows(self, examples: torch.Tensor) -> torch.Tensor:
        \"\"\"Return as many rows as a batch has.\"\"\"
        return examples[torch.randint(EXAMPLES, (ROWS,), generator=self.random)]
""",
        ),
    ),
)

# Buffers are kept to be used again, and every record is longer than the last one: none that is free fits.
FRAGMENTED = Mistake(
    name="memory fragmentation",
    benchmark="signals",
    subject="Use the buffers of records again",
    metric="peak_memory",
    phase="record",
    function="take_buffer",
    edits=(
        lines_after(
            "signals/train.py",
            "        self.model = Denoiser()",
            "        self.free: list[torch.Tensor] = []",
            "        self.mixed = torch.empty(0)",
        ),
        Edit(
            "signals/train.py",
            "        mixed = torch.stack(heard).mean(dim=0)\n",
            "        self.free.append(self.mixed)\n"
            "        self.mixed = mixed = self.take_buffer(len(heard[0]))\n"
            "        torch.mean(torch.stack(heard), dim=0, out=mixed)\n",
        ),
        lines_before(
            "signals/train.py",
            "    def learn(self, recorded: torch.Tensor) -> None:",
            "    def take_buffer(self, length: int) -> torch.Tensor:",
            '        """Return a free buffer of this length, else a new one."""',
            "        for place, buffer in enumerate(self.free):",
            "            if len(buffer) == length:",
            "                return self.free.pop(place)",
            "        return torch.empty(length)",
            "",
        ),
        Edit(
            "signals/train.py",
            'return f"{self.steps} steps"',
            'return f"{self.steps} steps, {len(self.free)} buffers free"',
        ),
    ),
)

MISTAKES = (SLOW_RANK, SLOW_WORKER, GRAPH_BREAK, ITEM, GRADIENTS, UNRELATED, FRAGMENTED)
