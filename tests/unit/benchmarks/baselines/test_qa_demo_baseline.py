import pytest

from benchmarks.baselines.qa_demo import nearest_words, scores
from regardant.data.questions import ContextQuestion

CONTEXT = "The judge sees the red cat in Paris. The nurse sees the grey cat on Monday."


@pytest.mark.parametrize(
    ("question", "share", "answer"),
    [
        ("Who sees the grey cat?", 1.0, "nurse"),
        ("Where does the judge see the red cat?", 4 / 6, "in Paris"),
        ("What does the nurse eat?", 2 / 4, "grey cat on Monday"),
    ],
)
def test_the_answer_is_the_run_of_words_beside_those_of_the_question(question, share, answer):
    found = nearest_words(ContextQuestion(question, CONTEXT))
    assert found == (pytest.approx(share), answer)


def test_the_threshold_is_chosen_on_training_stories():
    train = [
        ContextQuestion("Who sees the grey cat?", CONTEXT, ("nurse",)),
        ContextQuestion("Who eats the cow?", CONTEXT),
    ]
    test = [ContextQuestion("Who sees the red cat?", CONTEXT, ("judge",)), ContextQuestion("Who hates it?", CONTEXT)]
    found = scores(train, test)
    assert (found.exact_match, found.no_answer_f1) == (1, 1)
