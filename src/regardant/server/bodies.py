"""Bodies of requests and responses, with examples. The limits that a server sets are checked by `limits`."""

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

LONGEST_FIELD = 50
"""Maximum number of characters of an unknown field's name in a message."""

SENTENCE = "The old judge sees the small cat."

RunName = Annotated[
    str | None, Field(description="Name of a run. Optional if only one run is served.", examples=["demo"])
]
RequestItem = Annotated[
    str | dict[str, Any],
    Field(
        description="A text; a file, as an object with `name` and `content` (base64); or the object that the run "
        "reads: a question with its context, a graph, an item of several parts."
    ),
]
BeamSize = Annotated[int | None, Field(ge=1, description="Hypotheses kept at each step. Default: the recipe's.")]


class Body(BaseModel):
    """Base of request bodies. Unknown fields are refused.

    Validation of a list stops at the first mistake (`fail_fast`): a body of the allowed size may hold millions of
    mistakes, and each would become an error.
    """

    model_config: ClassVar[ConfigDict] = {"extra": "forbid"}

    run: RunName = None

    @model_validator(mode="before")
    @classmethod
    def has_known_fields(cls, given: Any) -> Any:
        """Raise ValueError for the first unknown field. Pydantic itself collects all of them."""
        names = given if isinstance(given, dict) else ()
        unknown = next((name for name in names if name not in cls.model_fields), None)
        if unknown is not None:
            known = ", ".join(cls.model_fields)
            raise ValueError(
                f"{unknown[:LONGEST_FIELD]!r} is no field of this request, allowed are {known}: leave it out"
            )
        return given


class TranslateBody(Body):
    """Texts to translate."""

    texts: list[str] = Field(min_length=1, fail_fast=True, examples=[[SENTENCE]])
    beam_size: BeamSize = None
    nbest: int | None = Field(None, ge=1, description="Translations of each text, best first.")
    length_penalty: float | None = Field(
        None, ge=0, le=10, allow_inf_nan=False, description="Exponent of the length that divides log-probabilities."
    )


class Candidate(BaseModel):
    """A proposed translation."""

    text: str
    score: float = Field(description="Log-probability / length ** length_penalty, in nats.")


class Translation(Candidate):
    """The best translation of a text."""

    candidates: list[Candidate] = Field(description="As many as `nbest`, best first.")
    notes: list[str] = Field(description="Notes for the user, such as that a text was split or cut off.")


class Translations(BaseModel):
    """Translations in the order of the texts."""

    run: str
    translations: list[Translation]


class PredictBody(Body):
    """Items to answer."""

    items: list[RequestItem] = Field(min_length=1, fail_fast=True, examples=[["A moving film."]])


class Predictions(BaseModel):
    """Answers in the order of the items, as `regardant predict --json` prints them."""

    run: str
    predictions: list[dict[str, Any]] = Field(
        examples=[[{"item": "A moving film.", "answer": "good", "probabilities": {"good": 0.9, "bad": 0.1}}]]
    )


class ScoreBody(Body):
    """Texts to score."""

    items: list[RequestItem] = Field(
        min_length=1, fail_fast=True, examples=[[SENTENCE]], description="Texts; for a translator, the sources."
    )
    targets: list[str] | None = Field(
        None,
        fail_fast=True,
        examples=[["Le vieux juge voit le petit chat ."]],
        description="For a translator: the translation of each item.",
    )


class Scores(BaseModel):
    """Scores in the order of the items."""

    run: str
    scores: list[dict[str, Any]] = Field(
        description="For a translator `log_probability` in nats; for a language model `loss` in nats per token, "
        "`perplexity`, `bits_per_character`, `tokens` and `characters`.",
        examples=[[{"log_probability": -3.2}]],
    )


class InspectBody(Body):
    """An item to inspect."""

    item: RequestItem = Field(examples=[SENTENCE])
    target: str | None = Field(None, description="For a translator: the translation. Default: its own.")
    beam_size: BeamSize = None


class GenerateBody(Body):
    """A text to continue."""

    prompt: str = Field(min_length=1, examples=["Once "])
    max_tokens: int | None = Field(None, ge=1, description="Maximum number of tokens.", examples=[40])
    temperature: float | None = Field(
        None, ge=0, le=10, allow_inf_nan=False, description="1: the model's probabilities; 0: the likeliest token."
    )
    top_k: int | None = Field(None, ge=1, description="Sample from this number of likeliest tokens.")
    top_p: float | None = Field(
        None, gt=0, le=1, allow_inf_nan=False, description="Sample from the fewest tokens that reach this probability."
    )
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of the random numbers.")


class ServedRun(BaseModel):
    """A run that is served."""

    run: str
    task: str
    verbs: list[str]
    files: list[str] = Field(description="Suffixes of the files that are items. Empty: items are not files.")


class Problem(BaseModel):
    """A request that was not answered."""

    error: str = Field(
        description="One line: what was given, what is allowed, what to do.",
        examples=["texts has 40 entries, allowed are 32: send several requests"],
    )
