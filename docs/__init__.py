"""Pages of the documentation, and in `docs.build` what makes a site of them."""
