"""CTranslate2 (https://github.com/OpenNMT/CTranslate2), which decodes a trained Transformer in C++.

`specification` says our model in its words, `export` writes that to a folder, `search` decodes with the folder, and
`threads` measures how many threads it is given.
"""

from regardant.errors import ConfigError

try:
    import ctranslate2  # noqa: F401  # asked for here, so that nobody meets the error elsewhere
except ModuleNotFoundError as error:
    raise ConfigError("CTranslate2 is not installed: pip install 'ctranslate2>=4.8'") from error
