"""A small language written for this project: English-French sentence pairs with gold word alignments.

`corpus` draws train, validation, test and held-out sets; `LECTURE_SENTENCES` are two sentences of the language that
none of them holds; `count` returns the number of all pairs. A tree (`syntax`) is drawn from the language (`language`)
and written in both languages at once (`realisation`): one English sentence has one translation.

Links join words that share a meaning, many to many, and every target word has a link:

- Determiners, adjectives, nouns, pronouns, prepositions, adverbs and punctuation go with their counterparts, all words
  of a phrase with all that render them: "in front of", devant; "many", beaucoup de.
- A contraction stands for both its parts: du goes with "of" and "the". Partitive de la goes with "some".
- A French article where English has none goes with its noun: la France.
- A verb goes with its verb, and a French reflexive pronoun with it. Tense goes with tense. A past that is one word in
  English goes with auxiliary and participle (sat: s', est, assis). An English auxiliary goes with the French word that
  shows tense (did not sleep, n'a pas dormi: did, a; sleep, dormi), which may be the verb itself (will sleep: both with
  dormira; does not sleep: "does" and "sleep" with dort).
- In the passive "was" goes with a and été, "will" and "be" with sera, and participle with participle.
- "not" and "never" go with both halves: ne, pas; ne, jamais.
- In a question the auxiliary that comes first goes with est-ce que as well as with its counterpart in a statement.
- A particle and a preposition go with each other (about, de), and with the verb where the other language has none
  (waits for, attend; phones, téléphone à).
"""

from regardant.data.grammar.language import count
from regardant.data.grammar.lecture import LECTURE_SENTENCES
from regardant.data.grammar.realisation import Pair
from regardant.data.grammar.splits import Corpus, corpus

__all__ = ["LECTURE_SENTENCES", "Corpus", "Pair", "corpus", "count"]
