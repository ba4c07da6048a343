"""A page that loads something over the network is found."""

import pytest

from docs.build.offline import remote


@pytest.mark.parametrize(
    "loads",
    [
        '<script src="https://unpkg.com/a.js"></script>',
        '<link rel="stylesheet" href="https://fonts.org/a.css">',
        '<link rel="preconnect" href="//fonts.org">',
        '<img alt="" src="http://a.org/a.png">',
        '<iframe src="https://a.org"></iframe>',
        '<p style="background: url(https://a.org/a.png)">',
        "<style>@import 'https://a.org/a.css';</style>",
    ],
)
def test_what_a_page_loads_from_elsewhere_is_found(tmp_path, loads):
    (tmp_path / "a.html").write_text(f"<html><body>{loads}</body></html>")
    assert len(remote(tmp_path)) == 1 and remote(tmp_path)[0].startswith("a.html: ")


def test_links_to_read_and_own_files_are_not(tmp_path):
    (tmp_path / "a.html").write_text(
        '<link rel="canonical" href="https://a.org/"><a href="https://a.org">a</a><script src="./a.js"></script>'
        '<img src="data:image/png;base64,AA=="><code>url(https://a.org)</code>'
    )
    assert remote(tmp_path) == []


@pytest.mark.parametrize("rule", ["@import 'https://a.org/a.css';", 'a{src:url("//a.org/a.woff2")}'])
def test_what_a_style_sheet_loads_from_elsewhere_is_found(tmp_path, rule):
    (tmp_path / "a.css").write_text(rule)
    assert len(remote(tmp_path)) == 1
