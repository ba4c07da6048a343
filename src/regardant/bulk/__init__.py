"""Bulk work: one verb of a run over all rows of a corpus in shards.

The answers are sharded Parquet in the order of the rows. A file is there whole or not at all, so that work that was
interrupted is resumed by the same command.

OUT/part-SHARD-FILE.parquet    answers to the rows of an input shard, ROWS_A_FILE a file, both counted from 0
OUT/_work.json                 what is done to which shards, by which weights
OUT/_done/SHARD                its number of rows, once a shard is answered
"""

from regardant.bulk.folder import begin
from regardant.bulk.work import VERBS, Work, answer_shard

__all__ = ["VERBS", "Work", "answer_shard", "begin"]
