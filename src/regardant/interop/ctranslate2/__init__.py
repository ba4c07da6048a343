"""CTranslate2 (https://github.com/OpenNMT/CTranslate2), which decodes a trained Transformer in C++.

`specification` converts a model to a CTranslate2 specification, `export` writes it to a folder, `search` decodes with
the folder, and `threads` measures the best numbers of threads.
"""

from regardant.errors import ConfigError

try:
    import ctranslate2  # noqa: F401  # so that no other module has to handle its absence
except ModuleNotFoundError as error:
    raise ConfigError("CTranslate2 is not installed: pip install 'ctranslate2>=4.8'") from error
