"""Names of the tiny models, and texts for them: a module of its own, since `models` loads transformers."""

NAMES = ("bert", "bert_classes", "bert_vectors", "roberta", "gpt2", "llama", "llama_tied", "marian", "t5", "vit")
SENTENCES = ["the old films sat on a mat .", "a cat"]
LETTERS = ["the cat sat on a", "a mat"]
