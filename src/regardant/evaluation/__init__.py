"""How good the answers are, by well-kept libraries: translation scores and word alignment."""
