"""Sentences of trees, written in both languages at once, so that the links cannot be wrong.

Every constituent writes its English and its French from one set of meanings, each a bit; two words are linked where
they share a bit. The package's docstring lists the resulting rules.

Brackets among the English words are marks without a bit, and make the tree of the sentence. Their labels: S a
clause, SQ a question, SBAR a relative clause, NP, VP and PP, ADJP a predicative adjective, ADVP a phrase of manner,
frequency or time, WH a question word or phrase. The verb phrase of a statement begins with its auxiliary.
"""

from dataclasses import dataclass
from typing import NamedTuple

from regardant.data.grammar.lexicon import (
    AVOIR_PRESENT,
    BE,
    ENGLISH_BE,
    REFLEXIVE,
    WHO,
    Phrase,
    Polarity,
    Pronoun,
    Tense,
)
from regardant.data.grammar.surface import Marked, english_text, french_text
from regardant.data.grammar.syntax import (
    Clause,
    Compound,
    NounPhrase,
    PrepositionalPhrase,
    Question,
    Sentence,
    Statement,
    Subject,
)
from regardant.data.words import words


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence, its translation, and the links between their words."""

    source: str
    target: str
    links: tuple[tuple[int, int], ...]
    """Indices into `words(source)` and `words(target)`, in order."""
    tree: str
    """The brackets of the source, with its words and its final mark: (S (NP The cat )NP (VP slept )VP . )S."""


NO_WORD = 0
"""The meaning of a bracket."""


class Both(NamedTuple):
    """The same meaning in two languages, in the word order of each."""

    english: list[Marked]
    french: list[Marked]

    def add(self, other: "Both") -> None:
        self.english.extend(other.english)
        self.french.extend(other.french)

    def within(self, label: str) -> "Both":
        """Return both, with the English words in a bracket of this label."""
        return Both(bracketed(label, self.english), self.french)


def bracketed(label: str, english: list[Marked]) -> list[Marked]:
    """Return English words in a bracket of this label."""
    return [Marked(f"({label}", NO_WORD), *english, Marked(f"){label}", NO_WORD)]


class Agreement(NamedTuple):
    person: int
    """Index into a French verb's forms: je, il, nous, vous, ils."""
    form: int
    """Index into an adjective's or participle's forms."""


class Meanings:
    """Allocator of bits, each for one meaning in the sentence."""

    def __init__(self) -> None:
        self.next = 1

    def take(self, count: int = 1) -> int:
        """Return the lowest of `count` neighbouring bits."""
        first = self.next
        self.next <<= count
        return first


def realise(sentence: Sentence) -> Pair:
    meanings = Meanings()
    written = Both([], [])
    end = "."
    if isinstance(sentence, Compound):
        written.add(statement(sentence.first, meanings).within("S"))
        written.add(fixed(sentence.conjunction, meanings))
        written.add(statement(sentence.second, meanings).within("S"))
    elif isinstance(sentence, Statement) or sentence.clause.subject is WHO:
        written.add(statement(sentence.clause, meanings))
        end = "." if isinstance(sentence, Statement) else "?"
    else:
        written.add(question(sentence, meanings))
        end = "?"
    stop = Marked(end, meanings.take())
    english = [*written.english, stop]
    source, source_meanings = english_text(without_brackets(english))
    target, target_meanings = french_text([*written.french, stop])
    links = tuple(
        (i, j)
        for i, source_meaning in enumerate(source_meanings)
        for j, target_meaning in enumerate(target_meanings)
        if source_meaning & target_meaning
    )
    return Pair(source, target, links, tree_text(bracketed("S" if end == "." else "SQ", english), source))


def without_brackets(english: list[Marked]) -> list[Marked]:
    """Return the words alone."""
    return [word for word in english if word.meaning != NO_WORD]


def tree_text(english: list[Marked], text: str) -> str:
    """Return the brackets with the words of the text between them."""
    written = iter(words(text))
    pieces = (word.text if word.meaning == NO_WORD else next(written).text for word in english)
    return " ".join(pieces)


def fixed(phrase: Phrase, meanings: Meanings) -> Both:
    first = meanings.take(len(phrase.english))
    return Both(
        [Marked(word, first << place) for place, word in enumerate(phrase.english)],
        [Marked(word, first * bits) for word, bits in phrase.french],
    )


def noun_phrase(phrase: NounPhrase, meanings: Meanings) -> Both:
    noun, plural = phrase.noun, phrase.plural
    meaning = meanings.take()
    form = gender_and_number(phrase)
    determiner = fixed(phrase.determiner.forms[noun.feminine], meanings)
    english, before, after = determiner.english, [], []
    for adjective in phrase.adjectives:
        quality = meanings.take()
        name = capitalise(adjective.english) if "title" in noun.tags else adjective.english
        english.append(Marked(name, quality))
        if adjective.before:
            before.append(Marked(adjective.french[form], quality))
        else:
            after.append(Marked(adjective.french[form], quality))
    # An article that English does without (France, la France) has no bits, and goes with its noun.
    french = [Marked(text, bits or meaning) for text, bits in determiner.french]
    if before and phrase.determiner.partitive:
        french = [Marked("de|d'", french[0].meaning)]
    english.append(Marked(noun.english[plural], meaning))
    french += [*before, Marked(noun.french[plural], meaning), *reversed(after)]
    written = Both(english, french)
    if phrase.complement is not None:
        written.add(prepositional_phrase(phrase.complement, meanings))
    if phrase.relative is not None:
        written.add(relative(phrase, phrase.relative, meanings))
    return written.within("NP")


def capitalise(adjective: str) -> str:
    mark = "*" if adjective.startswith("*") else ""
    name = adjective.removeprefix("*")
    return mark + name[0].upper() + name[1:]


def gender_and_number(phrase: NounPhrase) -> int:
    return phrase.noun.feminine + 2 * phrase.plural


def prepositional_phrase(phrase: PrepositionalPhrase, meanings: Meanings) -> Both:
    written = fixed(phrase.preposition, meanings)
    written.add(noun_phrase(phrase.phrase, meanings))
    return written.within("PP")


def relative(head: NounPhrase, clause: Clause, meanings: Meanings) -> Both:
    link = meanings.take()
    english = "who" if "person" in head.noun.tags else "that"
    french = "qui" if clause.subject is None else "que|qu'"
    written = Both([Marked(english, link)], [Marked(french, link)])
    antecedent = Agreement(4 if head.plural else 1, gender_and_number(head))
    if clause.subject is None:
        auxiliary, rest = predicate(clause, antecedent, None, meanings)
    else:
        subject, agreement = realise_subject(clause.subject, meanings)
        written.add(subject)
        auxiliary, rest = predicate(clause, agreement, antecedent, meanings)
    written.add(verb_phrase(auxiliary, rest))
    return written.within("SBAR")


def verb_phrase(auxiliary: list[Marked], rest: Both) -> Both:
    return Both([*auxiliary, *rest.english], rest.french).within("VP")


def realise_subject(subject: Subject, meanings: Meanings) -> tuple[Both, Agreement]:
    if isinstance(subject, Pronoun):
        meaning = meanings.take()
        written = Both([Marked(subject.english, meaning)], [Marked(subject.french, meaning)])
        return written.within("NP"), Agreement(subject.person, subject.agreement)
    if isinstance(subject, NounPhrase):
        agreement = Agreement(4 if subject.plural else 1, gender_and_number(subject))
        return noun_phrase(subject, meanings), agreement
    written = noun_phrase(subject.first, meanings)
    conjunction = meanings.take()
    written.add(Both([Marked("and", conjunction)], [Marked("et", conjunction)]))
    written.add(noun_phrase(subject.second, meanings))
    all_feminine = subject.first.noun.feminine and subject.second.noun.feminine
    return written.within("NP"), Agreement(4, 3 if all_feminine else 2)


def statement(clause: Clause, meanings: Meanings) -> Both:
    assert clause.subject is not None, "only a relative clause lacks its subject"
    written, agreement = realise_subject(clause.subject, meanings)
    auxiliary, rest = predicate(clause, agreement, None, meanings)
    written.add(verb_phrase(auxiliary, rest))
    return written


def question(sentence: Question, meanings: Meanings) -> Both:
    clause = sentence.clause
    assert clause.subject is not None, "only a relative clause lacks its subject"
    written = fixed(sentence.about, meanings).within("WH") if sentence.about else Both([], [])
    subject, agreement = realise_subject(clause.subject, meanings)
    (auxiliary,), rest = predicate(clause, agreement, None, meanings, asked=True)
    asking = meanings.take()
    written.english.append(Marked(auxiliary.text, auxiliary.meaning | asking))
    written.french.extend((Marked("est-ce", asking), Marked("que|qu'", asking)))
    written.add(subject)
    written.add(rest.within("VP"))
    return written


def predicate(
    clause: Clause, subject: Agreement, antecedent: Agreement | None, meanings: Meanings, *, asked: bool = False
) -> tuple[list[Marked], Both]:
    """Return the English auxiliary, if there is one, and the rest of the predicate in both languages.

    `antecedent` is the agreement of the noun that is the object of a relative clause.
    """
    tense, be, verb = meanings.take(), meanings.take(), meanings.take()
    if clause.description is not None:
        verb = be
    auxiliary, english = english_verb(clause, subject.person, asked, tense, be, verb)
    preceding = antecedent
    french: list[Marked] = []
    if clause.verb.reflexive:
        french.append(Marked(REFLEXIVE[subject.person], verb))
    him: list[Marked] = []
    if isinstance(clause.object, Pronoun):
        preceding = Agreement(clause.object.person, clause.object.agreement)
        meaning = meanings.take()
        him += bracketed("NP", [Marked(clause.object.english, meaning)])
        french.append(Marked(clause.object.french, meaning))
    finite, rest = french_verb(clause, subject, preceding, tense, be, verb)
    french.append(finite)
    middle: list[Marked] = []
    if clause.polarity is not Polarity.AFFIRMATIVE:
        negation = meanings.take()
        english_word, french_word = ("not", "pas") if clause.polarity is Polarity.NOT else ("never", "jamais")
        middle.append(Marked(english_word, negation))
        french = [Marked("ne|n'", negation), *french, Marked(french_word, negation)]
    written = Both(middle, french)
    if clause.frequency is not None:
        written.add(fixed(clause.frequency, meanings).within("ADVP"))
    written.add(Both(english, rest))
    written.add(complements(clause, subject, him, verb, meanings))
    return auxiliary, written


def english_verb(
    clause: Clause, person: int, asked: bool, tense: int, be: int, verb: int
) -> tuple[list[Marked], list[Marked]]:
    """Return the auxiliary, if there is one, and the rest of the verb."""
    when = clause.tense
    if clause.passive or clause.verb is BE:
        participle = [Marked(clause.verb.participle, verb)] if clause.passive else []
        if when is Tense.FUTURE:
            return [Marked("will", tense)], [Marked("be", be), *participle]
        return [Marked(ENGLISH_BE[when][person], tense | be)], participle
    infinitive = [Marked(clause.verb.base, verb)]
    third = person == 1
    if when is Tense.FUTURE:
        return [Marked("will", tense)], infinitive
    if asked or clause.polarity is Polarity.NOT:
        do = "did" if when is Tense.PAST else "does" if third else "do"
        return [Marked(do, tense)], infinitive
    if when is Tense.PAST:
        return [], [Marked(clause.verb.past, tense | verb)]
    return [], [Marked(clause.verb.third, tense | verb)] if third else [Marked(clause.verb.base, tense | verb)]


def french_verb(
    clause: Clause, subject: Agreement, preceding: Agreement | None, tense: int, be: int, verb: int
) -> tuple[Marked, list[Marked]]:
    """Return the finite verb, for ne and pas to enclose, and the participles. `preceding` is of an object before it."""
    when = clause.tense
    if clause.passive:
        participle = Marked(clause.verb.french_participle[subject.form], verb)
        if when is Tense.PAST:
            return Marked(AVOIR_PRESENT[subject.person], tense), [Marked("été", be), participle]
        return Marked(BE.french[when][subject.person], tense | be), [participle]
    simple = clause.verb.french.get(when)
    if simple is not None:
        return Marked(simple[subject.person], tense | verb), []
    if clause.verb.with_etre:
        auxiliary, form = BE.french[Tense.PRESENT][subject.person], subject.form
    else:
        auxiliary, form = AVOIR_PRESENT[subject.person], preceding.form if preceding else 0
    return Marked(auxiliary, tense), [Marked(clause.verb.french_participle[form], verb)]


def complements(clause: Clause, subject: Agreement, him: list[Marked], verb: int, meanings: Meanings) -> Both:
    """Return the parts after the verb. `him` is an English object pronoun; in French it precedes the verb."""
    written = Both([], [])
    if clause.description is not None:
        degree = clause.description.degree
        described = fixed(degree, meanings) if degree is not None else Both([], [])
        quality = meanings.take()
        adjective = clause.description.adjective
        plain = adjective.french[subject.form].partition("|")[0]
        described.add(Both([Marked(adjective.english, quality)], [Marked(plain, quality)]))
        written.add(described.within("ADJP"))
    if clause.object is not None:
        both = clause.verb.english_particle and clause.verb.french_preposition
        link = meanings.take() if both else verb  # a particle or preposition alone belongs to the verb
        if clause.verb.english_particle:
            written.english.append(Marked(clause.verb.english_particle, link))
        if clause.verb.french_preposition:
            written.french.append(Marked(clause.verb.french_preposition, link))
    if isinstance(clause.object, NounPhrase):
        written.add(noun_phrase(clause.object, meanings))
    written.english.extend(him)
    for phrase in (clause.recipient, clause.manner, clause.place, clause.time):
        if isinstance(phrase, PrepositionalPhrase):
            written.add(prepositional_phrase(phrase, meanings))
        elif phrase is not None:
            written.add(fixed(phrase, meanings).within("ADVP"))
    return written
