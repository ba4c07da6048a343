"""Sentences that readers could not follow stay gone: riddles, pronouns without a noun, translated idioms."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *(
        path
        for path in sorted((ROOT / "src").rglob("*"))
        if path.suffix in {".py", ".js", ".html", ".css", ".yaml", ".txt"}
    ),
    *sorted((ROOT / "benchmarks").rglob("*.py")),
]

GONE = """
evaluate, look at and keep
What is not given is chosen
said before training begins
the same command goes on
costs, `doctor` a sick one
a sick one
What it reaches
opens nothing by itself
it says an address of this machine
holds evaluated runs to
are held to
what does not pass by itself
Every so manieth
none where there are fewer rows
With all that depends on the target tokens
As long as none of the others has failed
What the layers before the last one say
A token that is clicked is counted
Read off layer
where gold links of the validation text say it is best
may be two alike
Go on with a text
Say what training will cost
Look for what is wrong with a run
Show it all on the embedded corpus
draws where it looks
what chance may be in them
tells of no training
On the way
Read aloud
""".strip().splitlines()


def test_there_are_texts_to_read():
    assert len(TEXTS) > 400


@pytest.mark.parametrize("phrase", GONE)
def test_an_unclear_sentence_stays_gone(phrase):
    words = phrase.split()
    found = [
        str(path.relative_to(ROOT)) for path in TEXTS if phrase in " ".join(path.read_text(encoding="utf-8").split())
    ]
    assert len(words) > 1 and found == []
