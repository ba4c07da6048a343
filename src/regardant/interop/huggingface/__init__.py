"""Models of Hugging Face's transformers (https://github.com/huggingface/transformers), read from their folders and
written to such folders. Neither needs the library.

`families` holds tables of names, which `layouts` reads in both directions; `forms` converts tensors, `tokenizer` token
ids. `reading` imports a folder, `writing` exports one.
"""
