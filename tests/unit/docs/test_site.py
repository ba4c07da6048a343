"""The site: its menu has all pages, it builds without a warning, and its pages need no network."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from docs.build.__main__ import SETTINGS, SiteError, check_menu, paths, with_globs
from docs.build.offline import remote
from docs.build.stage import PAGES

ROOT = Path(__file__).parents[3]


def test_a_path_with_a_star_stands_for_its_pages_in_order(tmp_path):
    for name in ("2.md", "1.md", "index.md"):
        (tmp_path / name).write_text("# A\n")
    assert with_globs([{"Notes": ["*.md"]}, "a.md"], tmp_path) == [{"Notes": ["1.md", "2.md"]}, "a.md"]


def test_a_page_that_no_menu_leads_to_is_refused(tmp_path):
    (tmp_path / "a.md").write_text("# A\n")
    check_menu([{"A": "a.md"}], tmp_path)
    with pytest.raises(SiteError, match=r"pages that no menu of zensical.yml leads to: a.md$"):
        check_menu(["b.md"], tmp_path)


def test_every_page_of_the_repository_is_in_the_menu():
    menu = set(paths(with_globs(yaml.safe_load(SETTINGS.read_text("utf-8"))["nav"], ROOT)))
    pages = {str(page.relative_to(ROOT)) for pattern in PAGES for page in ROOT.glob(pattern)}
    assert pages - menu == set()


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_needs_no_network(tmp_path):
    pytest.importorskip("zensical", reason="make docs installs it")
    site = tmp_path / "site"
    command = [sys.executable, "-m", "docs.build", "--site", str(site), "--stage", str(tmp_path / "stage")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert remote(site) == []
    pages = {str(page.relative_to(site)) for page in site.rglob("*.html")}
    assert pages >= {"index.html", "docs/using.html", "docs/decisions/0001-rooms-and-imports.html"}
    assert "Open a run folder." in (site / "docs/reference/python.html").read_text("utf-8")
    for source in (ROOT / "docs" / "tutorials").glob("*.md"):
        cells = json.loads((site / "docs" / "tutorials" / f"{source.stem}.ipynb").read_text("utf-8"))["cells"]
        blocks = [cell for cell in cells if cell["cell_type"] == "code"]
        assert len(blocks) >= 4 and all(block["execution_count"] for block in blocks), source.name
        assert sum(bool(block["outputs"]) for block in blocks) >= 3, f"{source.name} shows what its code prints"
    assert "kept in runs/mine/evaluation" in (site / "docs/tutorials/translator.html").read_text("utf-8")


@pytest.mark.slow
def test_a_tutorial_that_fails_is_named_with_its_code(tmp_path):
    pytest.importorskip("nbclient", reason="make docs installs it")
    (tmp_path / "a.md").write_text("# A\n\n```python\nx = 1 / 0\n```\n\n```bash\nfalse\ntrue\n```\n")
    code = f"""
from pathlib import Path
from docs.build.tutorials import TutorialError, execute_all
try:
    execute_all([Path({str(tmp_path / "a.md")!r})])
except TutorialError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120).stdout
    assert told.startswith("a.md: ") and "x = 1 / 0" in told and "ZeroDivisionError" in told
