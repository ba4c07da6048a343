"""Build the documentation site: `make docs`.

Pages of the repository are staged in `.site/`, generated ones beside them; zensical builds `site/` from both. Every
warning is an error: a link or an anchor that leads nowhere, a name that is not in the code, a tutorial that fails, a
page that loads something over the network.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from . import claims, configuration, verbs
from .links import BrokenLinkError
from .offline import remote
from .stage import stage, write
from .tutorials import TutorialError, execute_all

ROOT = Path(__file__).parents[2]
SETTINGS = Path(__file__).with_name("zensical.yml")
ASSETS = Path(__file__).with_name("assets")
"""Files that the pages load."""


def main() -> int:
    """Build the site and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m docs.build", description=__doc__)
    parser.add_argument("--site", type=Path, default=ROOT / "site", help="folder of the site [site]")
    parser.add_argument("--stage", type=Path, default=ROOT / ".site", help="folder of the staged pages [.site]")
    asked = parser.parse_args()
    site, staged = asked.site.resolve(), asked.stage.resolve()
    try:
        build(site, staged)
    except (BrokenLinkError, TutorialError, SiteError) as error:
        print(f"docs: {error}", file=sys.stderr)
        return 1
    print(f"open {site / 'index.html'}")
    return 0


class SiteError(RuntimeError):
    """Failure of the site build."""


def build(site: Path, staged: Path) -> None:
    """Stage the pages and build the site. Raises BrokenLinkError, TutorialError or SiteError."""
    shutil.rmtree(staged, ignore_errors=True)
    pages = staged / "pages"
    stage(ROOT, pages)
    shutil.copytree(ASSETS, pages / ASSETS.name)
    write(pages / "docs/reference/verbs.md", verbs.page())
    write(pages / "docs/reference/claims.md", claims.page())
    for name, text in configuration.pages().items():
        write(pages / f"docs/reference/configuration/{name}.md", text)
    settings = yaml.safe_load(SETTINGS.read_text(encoding="utf-8"))
    settings["nav"] = with_globs(settings["nav"], pages)
    check_menu(settings["nav"], pages)
    execute_all([pages / path for path in paths(settings["nav"]) if Path(path).parent.name == "tutorials"])
    write(staged / "zensical.yml", yaml.safe_dump(settings, sort_keys=False))
    _run_zensical(staged)
    if loads := remote(staged / "html"):
        raise SiteError("\n  ".join(["pages load files over the network:", *loads]))
    shutil.rmtree(site, ignore_errors=True)
    shutil.move(staged / "html", site)


def with_globs(nav: list[Any], pages: Path) -> list[Any]:
    """Return a menu in which a path with a star is replaced by the pages that it matches, in order."""
    entries: list[Any] = []
    for entry in nav:
        if isinstance(entry, dict):
            entries += [
                {name: with_globs(inside, pages) if isinstance(inside, list) else inside}
                for name, inside in entry.items()
            ]
        elif "*" in entry:
            entries += [str(path.relative_to(pages)) for path in sorted(pages.glob(entry)) if path.stem != "index"]
        else:
            entries.append(entry)
    return entries


def paths(nav: list[Any]) -> list[str]:
    """Return the pages of a menu and of the menus inside it."""
    found: list[str] = []
    for entry in nav:
        inside = list(entry.values()) if isinstance(entry, dict) else [entry]
        for one in inside:
            found += paths(one) if isinstance(one, list) else [one]
    return found


def check_menu(nav: list[Any], pages: Path) -> None:
    """Raise SiteError if a staged page is in no menu. Indexes of linked folders are exempt: only links lead to them."""
    staged = {str(page.relative_to(pages)) for page in pages.rglob("*.md") if page.name != "index.md"}
    if missing := sorted(staged - set(paths(nav))):
        raise SiteError(f"pages that no menu of {SETTINGS.name} leads to: {', '.join(missing)}")


def _run_zensical(staged: Path) -> None:
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", "zensical.yml"]
    done = subprocess.run(command, cwd=staged, env=os.environ | {"NO_COLOR": "1"}, capture_output=True, text=True)
    if done.returncode:
        raise SiteError(f"zensical ended with status {done.returncode}:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
