"""The documentation site: `make docs` stages the pages of the repository, adds generated ones and builds `site/`."""
