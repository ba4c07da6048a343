"""Images that a run of `digit-streams` writes for captions, and words that it writes for images.

    .venv/bin/python -m benchmarks.digit_streams runs/digit-streams

For every digit and caption, images are drawn by the run's own sampling; a logistic regression on the pixels of training
images says which digit each shows. Beside it stand the shares of test images that it recognises as they are, and after
they were written in codes and read again. For each test image a caption is written, token by token the likeliest one,
whose word is compared with the digit.
"""

import re
import sys

import numpy as np
from sklearn.linear_model import LogisticRegression

from regardant.data.captioned_digits import TEMPLATES, WORDS, caption
from regardant.data.digit_streams import CODES_OF_AN_IMAGE, SEPARATOR, SIDE
from regardant.errors import DataError
from regardant.run import Run, load

from .baselines.digits import images as pixels_of

SAMPLES = 20
"""Images of each caption."""

LONGEST = max(len(caption(digit, template)) for digit in range(10) for template in TEMPLATES)


def measure(run: Run, *, samples: int = SAMPLES, images: int | None = None) -> dict[str, float]:
    """Return shares of right digits. `images` limits the test images that captions are written for."""
    data = run.config.data
    sets, book = pixels_of(data.seed), data.codebook()
    classifier = LogisticRegression(max_iter=5000).fit(*sets["train"])
    pixels, labels = sets["test"]
    written = [book.encode(image.reshape(SIDE, SIDE)) for image in pixels]
    again = np.stack([book.decode(codes).ravel() for codes in written])
    drawn, asked, broken = [], [], 0
    for digit in range(10):
        for template in TEMPLATES:
            prompt = caption(digit, template) + SEPARATOR
            for codes in run.generate(prompt, samples=samples, max_tokens=CODES_OF_AN_IMAGE):
                try:
                    drawn.append(book.decode(codes).ravel())
                    asked.append(str(digit))
                except DataError:
                    broken += 1
    right = int((classifier.predict(np.stack(drawn)) == np.array(asked)).sum()) if drawn else 0
    named = [
        _digit_of(run.generate(codes + SEPARATOR, max_tokens=LONGEST + 1, temperature=0.0)[0])
        for codes in written[:images]
    ]
    return {
        "images": len(asked) + broken,
        "images_recognised": right / (len(asked) + broken),
        "images_broken": broken / (len(asked) + broken),
        "test_images_recognised": float(classifier.score(pixels, labels)),
        "test_images_in_codes_recognised": float(classifier.score(again, labels)),
        "captions": len(named),
        "captions_right": float(np.mean(np.array(named) == labels[:images])),
    }


def _digit_of(text: str) -> str:
    """Return the digit that the first line of a text names. Empty: none, or several."""
    line = text.partition("\n")[0]
    found = [str(number) for number, word in enumerate(WORDS) if re.search(rf"\b({word}|{number})\b", line)]
    return found[0] if len(found) == 1 else ""


if __name__ == "__main__":
    (folder,) = sys.argv[1:]
    for name, value in measure(load(folder)).items():
        print(f"{name:34} {value:.4f}" if isinstance(value, float) else f"{name:34} {value:,}")
