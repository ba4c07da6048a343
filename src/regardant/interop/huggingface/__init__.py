"""Models of Hugging Face's transformers (https://github.com/huggingface/transformers), read from their folders and
written to such folders. Neither needs the library.

`families` holds tables of names, `layouts` reads them in both directions, `forms` says how tensors differ, `tokenizer`
how ids do. `reading` opens a folder, `writing` makes one.
"""
