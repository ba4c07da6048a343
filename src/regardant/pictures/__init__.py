"""Drawings: attention as an offline page, a heat map or shades over an item; numbers as tables, curves, bars and dots.

`assets/` holds the stylesheets of pages and the JavaScript modules that draw attention, without a library, which any
page can load.
"""

from regardant.pictures.charts import Bars, Curve, alone, bar_chart, line_chart
from regardant.pictures.head_grid import head_grid_svg
from regardant.pictures.heat_map import Matrix, heat_map_svg, matrix_svg
from regardant.pictures.intervals import Estimate, Estimates, interval_chart
from regardant.pictures.notebook import Answers, facts, in_notebook, tables_in_notebook
from regardant.pictures.one_head import head_svg
from regardant.pictures.page import attention_page
from regardant.pictures.pdf import pdf, require_pdf
from regardant.pictures.picture import AttentionPicture, Layout
from regardant.pictures.png import png
from regardant.pictures.report import Chapter, report_page
from regardant.pictures.sparkline import sparkline
from regardant.pictures.svg import Drawing
from regardant.pictures.table import Table

__all__ = [
    "Answers",
    "AttentionPicture",
    "Bars",
    "Chapter",
    "Curve",
    "Drawing",
    "Estimate",
    "Estimates",
    "Layout",
    "Matrix",
    "Table",
    "alone",
    "attention_page",
    "bar_chart",
    "facts",
    "head_grid_svg",
    "head_svg",
    "heat_map_svg",
    "in_notebook",
    "interval_chart",
    "line_chart",
    "matrix_svg",
    "pdf",
    "png",
    "report_page",
    "require_pdf",
    "sparkline",
    "tables_in_notebook",
]
