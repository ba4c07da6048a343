"""The two sentences that attention is usually drawn on, as trees of the language.

The second is the one of Bahdanau, Cho and Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and
Translate", figure 3: in French "European Economic Area" is in reverse order.
"""

from regardant.data.grammar.lexicon import (
    Determiner,
    Polarity,
    Tense,
    adjectives,
    determiners,
    nouns,
    phrase,
    phrases,
    verbs,
)
from regardant.data.grammar.realisation import Pair, realise
from regardant.data.grammar.syntax import Clause, NounPhrase, PrepositionalPhrase, Statement


def the(kind: str) -> Determiner:
    return next(one for one in determiners() if one.kind == kind and one.forms[0].english == ("the",))


CAT_ON_THE_MAT = Statement(
    Clause(
        verb=verbs()["sit"],
        tense=Tense.PAST,
        polarity=Polarity.AFFIRMATIVE,
        subject=NounPhrase(nouns()["cat"], plural=False, determiner=the("singular")),
        place=PrepositionalPhrase(
            phrases("seat")["on"], NounPhrase(nouns()["mat"], plural=False, determiner=the("singular"))
        ),
    )
)
EUROPEAN_ECONOMIC_AREA = NounPhrase(
    nouns()["Area"],
    plural=False,
    determiner=the("title"),
    adjectives=(adjectives()["European"], adjectives()["economic"]),
)
AGREEMENT_WAS_SIGNED = Statement(
    Clause(
        verb=verbs()["sign"],
        tense=Tense.PAST,
        polarity=Polarity.AFFIRMATIVE,
        passive=True,
        subject=NounPhrase(
            nouns()["agreement"],
            plural=False,
            determiner=the("singular"),
            complement=PrepositionalPhrase(phrases("topic")["on"], EUROPEAN_ECONOMIC_AREA),
        ),
        time=phrase("in August 1992", "en août 1992", "0-0 1-1 2-2"),
    )
)
LECTURE_TREES = (CAT_ON_THE_MAT, AGREEMENT_WAS_SIGNED)
LECTURE_SENTENCES: tuple[Pair, ...] = tuple(map(realise, LECTURE_TREES))
"""Pairs that are never part of a corpus, so that they may be shown as unseen."""
