"""Links of pages hold, and bring what they lead to."""

from pathlib import Path

import pytest

from docs.build.links import BrokenLinkError, follow
from docs.build.stage import PAGES, stage

ROOT = Path(__file__).parents[3]


@pytest.fixture
def root(tmp_path):
    """A repository with a page, a folder with a page and a picture."""
    (tmp_path / "docs" / "notes").mkdir(parents=True)
    (tmp_path / "docs" / "using.md").write_text("# Using\n\nSee [notes](notes) and [one](notes/1.md#why).\n")
    (tmp_path / "docs" / "notes" / "1.md").write_text("# One\n")
    (tmp_path / "docs" / "notes" / "a.svg").write_text("<svg/>")
    return tmp_path


def write(root, text):
    (root / "docs" / "using.md").write_text(text, encoding="utf-8")
    return root / "docs" / "using.md"


def test_a_link_to_nothing_is_named_with_its_page_and_line(root):
    page = write(root, "# Using\n\nSee [this](none.md).\n")
    with pytest.raises(BrokenLinkError, match=r"^docs/using.md:3: links to none.md, which is not in the repository$"):
        follow(page, root, lambda path: None)


def test_a_link_out_of_the_repository_is_refused(root):
    page = write(root, "[up](../..)\n")
    with pytest.raises(BrokenLinkError, match="not in the repository"):
        follow(page, root, lambda path: None)


def test_addresses_and_code_are_no_links(root):
    page = write(root, "[a](https://a.org/b) [b](#here)\n```\nx[0](none.md)\n```\n")
    assert follow(page, root, lambda path: pytest.fail(str(path))) == page.read_text()


def test_a_link_to_a_folder_leads_to_its_index_and_others_stay(root):
    linked = []
    text = follow(root / "docs" / "using.md", root, linked.append)
    assert text == "# Using\n\nSee [notes](notes/index.md) and [one](notes/1.md#why).\n"
    assert linked == [root / "docs" / "notes", root / "docs" / "notes" / "1.md"]


def test_a_linked_folder_gets_a_page_of_its_files(root, tmp_path):
    staged = tmp_path / "staged"
    stage(root, staged)
    assert (staged / "docs" / "notes" / "index.md").read_text() == (
        "# docs/notes\n\n- [One](1.md)\n- [`a.svg`](a.svg)\n"
    )
    assert (staged / "docs" / "notes" / "a.svg").read_text() == "<svg/>"


def test_a_linked_file_comes_along(root, tmp_path):
    write(root, "![a](notes/a.svg)\n")
    stage(root, tmp_path / "staged")
    assert (tmp_path / "staged" / "docs" / "notes" / "a.svg").read_text() == "<svg/>"


def test_all_links_of_this_repository_hold_and_pages_keep_their_paths(tmp_path):
    stage(ROOT, tmp_path)
    pages = [page.relative_to(ROOT) for pattern in PAGES for page in ROOT.glob(pattern)]
    assert len(pages) > 30
    assert all((tmp_path / page).is_file() for page in pages)
