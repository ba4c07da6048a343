"""Sentences spelled out: agreement, word order and links."""

import pytest

from regardant.data.grammar.language import language
from regardant.data.grammar.lexicon import (
    BE,
    OBJECT_PRONOUNS,
    SUBJECT_PRONOUNS,
    WHO,
    Determiner,
    Polarity,
    Pronoun,
    Tense,
    adjectives,
    determiners,
    nouns,
    phrases,
    verbs,
)
from regardant.data.grammar.realisation import Pair, realise
from regardant.data.grammar.syntax import (
    Clause,
    Compound,
    Coordination,
    Description,
    NounPhrase,
    PrepositionalPhrase,
    Question,
    Statement,
    Subject,
)
from regardant.data.words import words

PRESENT, PAST, FUTURE = Tense
YES, NOT, NEVER = Polarity


def determiner(kind: str, english: str, role: str) -> Determiner:
    named = (one for one in determiners() if " ".join(one.forms[0].english) == english)
    return next(one for one in named if one.kind == kind and role in one.roles)


def the(
    *description: str, kind: str = "singular", det: str = "the", role: str = "object", **fields: object
) -> NounPhrase:
    """`the("old", "cat")`: adjectives in English order, then the noun."""
    *qualities, noun = description
    row = tuple(adjectives()[quality] for quality in qualities)
    return NounPhrase(nouns()[noun], kind == "plural", determiner(kind, det, role), row, **fields)


def pronoun(english: str, among: tuple[Pronoun, ...] = SUBJECT_PRONOUNS) -> Pronoun:
    return next(one for one in among if one.english == english)


def says(verb: str, subject: Subject | None, tense: Tense = PAST, polarity: Polarity = YES, **fields: object) -> Clause:
    return Clause(BE if verb == "be" else verbs()[verb], tense, polarity, subject, **fields)


def where(kind: str, preposition: str, phrase: NounPhrase) -> PrepositionalPhrase:
    return PrepositionalPhrase(phrases(kind)[preposition], phrase)


def both(pair: Pair) -> tuple[str, str]:
    return pair.source, pair.target


def linked(pair: Pair) -> list[tuple[str, str]]:
    source, target = words(pair.source), words(pair.target)
    return [(source[i].text, target[j].text) for i, j in pair.links]


@pytest.mark.parametrize(
    ("clause", "english", "french"),
    [
        (says("sit", the("girl")), "The girl sat.", "La fille s'est assise."),
        (says("sit", the("girl", kind="plural")), "The girls sat.", "Les filles se sont assises."),
        (says("sit", pronoun("we"), PRESENT), "We sit.", "Nous nous asseyons."),
        (says("sit", pronoun("I"), PAST, NOT), "I did not sit.", "Je ne me suis pas assis."),
        (says("leave", pronoun("you")), "You left.", "Vous êtes parti."),
        (
            says("leave", Coordination(the("queen"), the("nurse"))),
            "The queen and the nurse left.",
            "La reine et l'infirmière sont parties.",
        ),
        (
            says("leave", Coordination(the("queen"), the("king"))),
            "The queen and the king left.",
            "La reine et le roi sont partis.",
        ),
        (
            says("eat", the("dog"), FUTURE, NEVER, object=the("orange", det="any", role="negated", kind="plural")),
            "The dog will never eat any oranges.",
            "Le chien ne mangera jamais d'oranges.",
        ),
        (
            says("drink", pronoun("she"), PAST, object=the("water", kind="mass", det="some")),
            "She drank some water.",
            "Elle a bu de l'eau.",
        ),
        (
            says("drink", pronoun("she"), PAST, NOT, object=the("wine", kind="mass", det="any", role="negated")),
            "She did not drink any wine.",
            "Elle n'a pas bu de vin.",
        ),
        (
            says("eat", pronoun("he"), object=the("bread", kind="mass", det="some")),
            "He ate some bread.",
            "Il a mangé du pain.",
        ),
        (
            says("see", the("man"), PAST, YES, object=pronoun("her", OBJECT_PRONOUNS)),
            "The man saw her.",
            "L'homme l'a vue.",
        ),
        (
            says("see", the("man"), PRESENT, NOT, object=pronoun("them", OBJECT_PRONOUNS)),
            "The man does not see them.",
            "L'homme ne les voit pas.",
        ),
        (
            says("buy", the("hero"), object=the("beautiful", "old", "hangar", det="a|an")),
            "The hero bought a beautiful old hangar.",
            "Le héros a acheté un beau vieux hangar.",
        ),
        (
            says("buy", pronoun("I"), object=the("old", "house", kind="plural", det="some")),
            "I bought some old houses.",
            "J'ai acheté de vieilles maisons.",
        ),
        (
            says("meet", the("new", "minister"), object=the("honest", "French", "writer", det="a|an")),
            "The new minister met an honest French writer.",
            "Le nouveau ministre a rencontré un écrivain français honnête.",
        ),
        (
            says("know", the("honest", "European", "painter"), object=the("old", "friend", det="my")),
            "The honest European painter knew my old friend.",
            "Le peintre européen honnête connaissait mon vieil ami.",
        ),
        (
            says("have", the("aunt", det="her"), PAST, NOT, object=the("hen", det="a|an", role="negated")),
            "Her aunt did not have a hen.",
            "Sa tante n'avait pas de poule.",
        ),
        (
            says("go", the("brother"), place=where("goal", "to", the("market"))),
            "The brother went to the market.",
            "Le frère est allé au marché.",
        ),
        (
            says(
                "sleep",
                the("owl"),
                PRESENT,
                frequency=phrases("frequency")["often"],
                place=where("beside", "next to", the("lake")),
            ),
            "The owl often sleeps next to the lake.",
            "Le hibou dort souvent à côté du lac.",
        ),
        (
            says("steal", the("doctor", det="this"), PAST, object=the("axe", det="that")),
            "This doctor stole that axe.",
            "Ce médecin a volé cette hache.",
        ),
        (
            says("answer", the("friend", det="my"), PRESENT, object=the("king", kind="plural")),
            "My friend answers the kings.",
            "Mon ami répond aux rois.",
        ),
        (
            says("remember", the("mother"), object=the("war")),
            "The mother remembered the war.",
            "La mère s'est souvenue de la guerre.",
        ),
        (says("wait", pronoun("they"), PRESENT, object=the("bus")), "They wait for the bus.", "Ils attendent le bus."),
        (
            says("write", the("letter", kind="plural"), passive=True, recipient=where("agent", "by", the("child"))),
            "The letters were written by the child.",
            "Les lettres ont été écrites par l'enfant.",
        ),
        (
            says("open", the("door"), FUTURE, NOT, passive=True),
            "The door will not be opened.",
            "La porte ne sera pas ouverte.",
        ),
        (
            says(
                "be",
                the("horse", kind="plural"),
                description=Description(adjectives()["old"], phrases("degree")["too"]),
            ),
            "The horses were too old.",
            "Les chevaux étaient trop vieux.",
        ),
        (
            says("be", the("tree"), PRESENT, description=Description(adjectives()["beautiful"], None)),
            "The tree is beautiful.",
            "L'arbre est beau.",
        ),
    ],
)
def test_statements(clause: Clause, english: str, french: str):
    assert both(realise(Statement(clause))) == (english, french)


@pytest.mark.parametrize(
    ("sentence", "english", "tree"),
    [
        (
            Statement(says("sit", the("old", "cat"), polarity=NOT, place=where("seat", "on", the("mat")))),
            "The old cat did not sit on the mat.",
            "(S (NP The old cat )NP (VP did not sit (PP on (NP the mat )NP )PP )VP . )S",
        ),
        (
            Statement(says("see", pronoun("we"), object=pronoun("her", OBJECT_PRONOUNS))),
            "We saw her.",
            "(S (NP We )NP (VP saw (NP her )NP )VP . )S",
        ),
        (
            Statement(
                says(
                    "be",
                    the("apple", kind="plural", relative=says("buy", the("woman"))),
                    description=Description(adjectives()["ripe"], phrases("degree")["very"]),
                )
            ),
            "The apples that the woman bought were very ripe.",
            "(S (NP The apples (SBAR that (NP the woman )NP (VP bought )VP )SBAR )NP "
            "(VP were (ADJP very ripe )ADJP )VP . )S",
        ),
        (
            Question(says("sleep", the("cat"), FUTURE), phrases("about")["where"]),
            "Where will the cat sleep?",
            "(SQ (WH Where )WH will (NP the cat )NP (VP sleep )VP ? )SQ",
        ),
        (Question(says("arrive", WHO)), "Who arrived?", "(SQ (NP Who )NP (VP arrived )VP ? )SQ"),
        (
            Compound(
                says("sleep", Coordination(the("king"), the("queen"))),
                phrases("conjunction")["because"],
                says("sleep", pronoun("he")),
            ),
            "The king and the queen slept because he slept.",
            "(S (S (NP (NP The king )NP and (NP the queen )NP )NP (VP slept )VP )S because "
            "(S (NP he )NP (VP slept )VP )S . )S",
        ),
    ],
)
def test_trees(sentence, english: str, tree: str):
    pair = realise(sentence)
    assert (pair.source, pair.tree) == (english, tree)


def test_the_relative_noun_agrees_before_the_verb():
    bought = says("buy", the("woman"))
    apple = the("apple", kind="plural", relative=bought)
    pair = realise(Statement(says("be", apple, description=Description(adjectives()["ripe"], None))))
    assert both(pair) == (
        "The apples that the woman bought were ripe.",
        "Les pommes que la femme a achetées étaient mûres.",
    )


def test_a_relative_clause_agrees_with_its_noun():
    girls = the("girl", kind="plural", relative=says("leave", None))
    pair = realise(Statement(says("sleep", girls, PRESENT)))
    assert both(pair) == ("The girls who left sleep.", "Les filles qui sont parties dorment.")


@pytest.mark.parametrize(
    ("about", "clause", "english", "french"),
    [
        (None, says("sleep", pronoun("he")), "Did he sleep?", "Est-ce qu'il a dormi?"),
        (None, says("wait", pronoun("she"), PRESENT, object=the("train")), "Does she wait for the train?",
         "Est-ce qu'elle attend le train?"),
        ("where", says("sleep", the("cat"), FUTURE), "Where will the cat sleep?", "Où est-ce que le chat dormira?"),
        ("what", says("buy", the("nurse")), "What did the nurse buy?", "Qu'est-ce que l'infirmière a acheté?"),
        (None, says("arrive", WHO), "Who arrived?", "Qui est arrivé?"),
        (None, says("sign", the("law"), passive=True), "Was the law signed?", "Est-ce que la loi a été signée?"),
    ],
)  # fmt: skip
def test_questions(about: str | None, clause: Clause, english: str, french: str):
    assert both(realise(Question(clause, phrases("about")[about] if about else None))) == (english, french)


def test_two_clauses_are_joined():
    because = Compound(
        says("leave", the("cat")), phrases("conjunction")["because"], says("sleep", pronoun("he"), PAST, NOT)
    )
    assert both(realise(because)) == (
        "The cat left because he did not sleep.",
        "Le chat est parti parce qu'il n'a pas dormi.",
    )


def test_one_past_verb_links_to_auxiliary_participle_and_pronoun():
    assert linked(realise(Statement(says("sit", the("cat"))))) == [
        ("The", "Le"), ("cat", "chat"), ("sat", "s'"), ("sat", "est"), ("sat", "assis"), (".", "."),
    ]  # fmt: skip


def test_a_negated_past_links_auxiliary_to_auxiliary():
    assert linked(realise(Statement(says("eat", pronoun("he"), PAST, NOT)))) == [
        ("He", "Il"), ("did", "a"), ("not", "n'"), ("not", "pas"), ("eat", "mangé"), (".", "."),
    ]  # fmt: skip


def test_a_simple_tense_takes_the_auxiliary_in():
    assert linked(realise(Statement(says("sleep", pronoun("he"), FUTURE, NEVER)))) == [
        ("He", "Il"), ("will", "dormira"), ("never", "ne"), ("never", "jamais"), ("sleep", "dormira"), (".", "."),
    ]  # fmt: skip


def test_the_auxiliary_of_a_question_links_to_est_ce_que():
    assert linked(realise(Question(says("sleep", pronoun("he"))))) == [
        ("Did", "Est-ce"), ("Did", "qu'"), ("Did", "a"), ("he", "il"), ("sleep", "dormi"), ("?", "?"),
    ]  # fmt: skip


def test_the_passive_links_part_by_part():
    assert linked(realise(Statement(says("open", the("door"), FUTURE, passive=True)))) == [
        ("The", "La"), ("door", "porte"), ("will", "sera"), ("be", "sera"), ("opened", "ouverte"), (".", "."),
    ]  # fmt: skip


def test_a_contraction_links_to_both_words():
    pair = realise(Statement(says("sleep", pronoun("he"), PRESENT, place=where("beside", "near", the("lake")))))
    assert linked(pair)[2:] == [("near", "près"), ("near", "du"), ("the", "du"), ("lake", "lac"), (".", ".")]


def test_an_article_without_counterpart_links_to_its_noun():
    france = NounPhrase(nouns()["France"], False, next(d for d in determiners() if d.kind == "country"))
    pair = realise(Statement(says("visit", pronoun("he"), PRESENT, object=france)))
    assert linked(pair)[2:] == [("France", "la"), ("France", "France"), (".", ".")]


def test_a_particle_alone_links_to_its_verb():
    assert linked(realise(Statement(says("wait", pronoun("he"), PRESENT, object=the("bus")))))[1:3] == [
        ("waits", "attend"), ("for", "attend"),
    ]  # fmt: skip
    assert linked(realise(Statement(says("phone", pronoun("he"), PRESENT, object=the("king")))))[1:4] == [
        ("phones", "téléphone"), ("phones", "au"), ("the", "au"),
    ]  # fmt: skip


def test_an_object_pronoun_crosses_the_verb():
    pair = realise(Statement(says("see", pronoun("we"), PAST, object=pronoun("her", OBJECT_PRONOUNS))))
    assert linked(pair) == [("We", "Nous"), ("saw", "avons"), ("saw", "vue"), ("her", "l'"), (".", ".")]


def test_the_language_has_what_makes_sense_and_not_what_only_parses():
    assert Statement(says("sit", the("girl"))) in language()
    assert Statement(says("sit", the("treaty"))) not in language()
