"""Bulk work: one verb of a run applied to all rows of a sharded corpus.

The answers are sharded Parquet in the order of the rows. Files are written atomically, so that the same command resumes
interrupted work.

OUT/part-SHARD-FILE.parquet    answers to an input shard, ROWS_A_FILE rows a file; shards and files count from 0
OUT/_work.json                 verb, options, columns, and fingerprints of the weights and the shards
OUT/_done/SHARD                number of rows of a shard, once it is answered
"""

from regardant.bulk.folder import begin
from regardant.bulk.work import VERBS, Work, answer_shard

__all__ = ["VERBS", "Work", "answer_shard", "begin"]
