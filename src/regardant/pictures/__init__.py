"""Attention as one sees it: an offline page to look around in, and one heat map as a vector picture.

`assets/` holds the drawing itself, plain JavaScript modules without a library, which any page can load.
"""

from regardant.pictures.heat_map import heat_map_svg
from regardant.pictures.page import attention_page
from regardant.pictures.picture import AttentionPicture

__all__ = ["AttentionPicture", "attention_page", "heat_map_svg"]
