import pytest

from regardant.data.grammar import english, french
from regardant.data.grammar.lexicon import Tense, adjectives, nouns, verbs


@pytest.mark.parametrize(
    ("singular", "plural"),
    [("chat", "chats"), ("souris", "souris"), ("gâteau", "gâteaux"), ("cheval", "chevaux"), ("œuf", "œufs")],
)
def test_french_plural(singular: str, plural: str):
    assert french.plural(singular) == plural


def test_nouns_that_break_the_rule_are_in_the_table():
    assert nouns()["jewel"].french == ("bijou", "bijoux")
    assert nouns()["child"].english == ("child", "children")
    assert nouns()["wolf"].english == ("wolf", "wolves")


@pytest.mark.parametrize(
    ("adjective", "forms"),
    [
        ("old", ("vieux|vieil", "vieille", "vieux", "vieilles")),
        ("beautiful", ("beau|bel", "belle", "beaux", "belles")),
        ("new", ("nouveau|nouvel", "nouvelle", "nouveaux", "nouvelles")),
        ("happy", ("heureux", "heureuse", "heureux", "heureuses")),
        ("European", ("européen", "européenne", "européens", "européennes")),
        ("social", ("social", "sociale", "sociaux", "sociales")),
        ("white", ("blanc", "blanche", "blancs", "blanches")),
        ("brown", ("marron", "marron", "marron", "marron")),
        ("proud", ("fier", "fière", "fiers", "fières")),
        ("high", ("*haut", "*haute", "*hauts", "*hautes")),
    ],
)
def test_adjectives_agree(adjective: str, forms: tuple[str, ...]):
    assert adjectives()[adjective].french == forms


@pytest.mark.parametrize(
    ("verb", "present", "future"),
    [
        ("eat", "mange mange mangeons mangez mangent", "mangerai mangera mangerons mangerez mangeront"),
        ("begin", "commence commence commençons commencez commencent", "commencerai"),
        ("finish", "finis finit finissons finissez finissent", "finirai finira finirons finirez finiront"),
        ("wait", "attends attend attendons attendez attendent", "attendrai attendra attendrons attendrez attendront"),
        ("buy", "achète achète achetons achetez achètent", "achèterai achètera achèterons achèterez achèteront"),
        ("go", "vais va allons allez vont", "irai ira irons irez iront"),
        ("see", "vois voit voyons voyez voient", "verrai verra verrons verrez verront"),
        ("send", "envoie envoie envoyons envoyez envoient", "enverrai enverra enverrons enverrez enverront"),
        ("sit", "assieds assied asseyons asseyez asseyent", "assiérai assiéra assiérons assiérez assiéront"),
    ],
)
def test_verbs_conjugate(verb: str, present: str, future: str):
    assert " ".join(verbs()[verb].french[Tense.PRESENT]) == present
    assert " ".join(verbs()[verb].french[Tense.FUTURE]).startswith(future)


def test_participles_agree():
    assert verbs()["sit"].french_participle == ("assis", "assise", "assis", "assises")
    assert verbs()["write"].french_participle == ("écrit", "écrite", "écrits", "écrites")
    assert verbs()["lose"].french_participle == ("perdu", "perdue", "perdus", "perdues")


def test_what_lasts_has_a_simple_past():
    assert verbs()["know"].french[Tense.PAST] == (
        "connaissais",
        "connaissait",
        "connaissions",
        "connaissiez",
        "connaissaient",
    )
    assert Tense.PAST not in verbs()["eat"].french


@pytest.mark.parametrize(
    ("base", "third", "past"),
    [
        ("watch", "watches", "watched"),
        ("carry", "carries", "carried"),
        ("play", "plays", "played"),
        ("love", "loves", "loved"),
    ],
)
def test_english_verbs_inflect(base: str, third: str, past: str):
    assert (english.third_person(base), english.past(base)) == (third, past)


def test_irregular_english_verbs_are_in_the_table():
    forms = {
        verb: (verbs()[verb].third, verbs()[verb].past, verbs()[verb].participle) for verb in ("go", "have", "stop")
    }
    assert forms == {
        "go": ("goes", "went", "gone"),
        "have": ("has", "had", "had"),
        "stop": ("stops", "stopped", "stopped"),
    }


def test_no_english_past_reads_as_a_present():
    assert [verb.base for verb in verbs().values() if verb.past == verb.base] == []
