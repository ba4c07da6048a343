"""Job of question answering: windows with the span of the answer, and a validation on whole answers."""

from typing import Any

from regardant.evaluation.question_answering import no_answer_threshold, score_answers
from regardant.modalities import Codec
from regardant.models import Model
from regardant.tasks.items.data import EncodedItems
from regardant.tasks.items.job import ItemsJob, ScoredBatches
from regardant.tasks.question_answering.spans import find_answers, texts_of
from regardant.tasks.question_answering.windows import EncodedQuestions, QuestionBatches


class QuestionAnsweringJob(ItemsJob):
    """Job that trains on windows. Each validation chooses the no-answer threshold, which is kept with the weights."""

    validation: QuestionBatches

    def __init__(self, config: Any, codec: Codec, splits: dict[str, EncodedQuestions], model: Model) -> None:
        super().__init__(config, codec, {**splits}, model, self._scored, unit="window")

    def batches_of(self, split: EncodedItems, codec: Codec, *, batch_tokens: int, max_length: int) -> QuestionBatches:
        return QuestionBatches(split, codec, batch_tokens=batch_tokens, max_length=max_length, seed=self.seed)

    def _scored(self, answers: ScoredBatches) -> dict[str, float]:
        split, longest = self.validation.split, self.config.answering.max_answer_length
        found = find_answers(split, self.validation.plan(0), answers, longest)
        right, best = [one.answers for one in split.questions], texts_of(found, split.questions)
        threshold = self.model.head.threshold
        threshold.fill_(no_answer_threshold([at.score for at in found], best, right))
        scores = score_answers(texts_of(found, split.questions, float(threshold)), right)
        metrics = {"f1": scores.f1, "exact_match": scores.exact_match, "no_answer_f1": scores.no_answer_f1}
        return {**metrics, "threshold": float(threshold)}
