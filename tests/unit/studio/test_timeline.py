"""The timeline lists the papers that recipes name, by year."""

from regardant import config
from regardant.studio.timeline import papers


def test_every_rung_of_the_ladder_is_in_it_by_year():
    found = papers([])
    assert {paper["recipe"] for paper in found} >= {name for name in config.recipes() if name.startswith("ladder/")}
    assert [paper["year"] for paper in found] == sorted(paper["year"] for paper in found)
    (first,) = (paper for paper in found if paper["recipe"] == "ladder/transformer")
    assert first == {
        "authors": "Vaswani et al.",
        "year": "2017",
        "link": "https://arxiv.org/abs/1706.03762",
        "command": "regardant train ladder/transformer",
        "recipe": "ladder/transformer",
        "what": "the Transformer, in which every token sees every other",
        "run": None,
    }


def test_a_run_in_a_folder_of_the_recipe_s_name_is_linked():
    runs = {paper["recipe"]: paper["run"] for paper in papers(["runs/mine", "runs/ladder/linear", "ladder/lsh"])}
    assert (runs["ladder/linear"], runs["ladder/lsh"], runs["ladder/window"]) == (
        "runs/ladder/linear",
        "ladder/lsh",
        None,
    )


def test_the_studio_lists_them(studio):
    client, _ = studio
    assert client.get("/api/timeline").json() == papers([])
