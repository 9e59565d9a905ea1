# SPDX-License-Identifier: Apache-2.0
"""Scores many pairs of files with the program: here, on a Dask cluster, in Ray Data or in Spark.

    from dask.distributed import Client
    from similis import corpus

    corpus.score("pairs.csv", ["psnr", "ssim"], "scores.jsonl", client=Client())

The file of results is that of `similis compare --pairs`: the same call again scores what is missing,
and `similis merge` and `similis report` read it. `Scorer` alone is what Ray Data's map_batches and,
as `Scorer.map_in_pandas`, Spark's mapInPandas take.

Each batch is one run of the program, which reads, decodes and scores its pairs; scores are the
program's own. Dask is needed only for a client (`pip install similis[corpus]`).
"""

from __future__ import annotations

import csv
import fcntl
import itertools
import json
import os
import pathlib
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Pair", "Results", "Scorer", "read_pairs", "score"]

_BATCH = 64  # pairs of one run of the program
_SYNC_SECONDS = 5
_SUCCEEDED, _SOME_FAILED = 0, 1  # exit statuses of the program


class Pair(NamedTuple):
    """Two files and the id of their row; by default both paths with a tab between them."""

    reference: str
    distorted: str
    id: str = ""

    @property
    def key(self) -> str:
        """The id, or what stands for it."""
        return self.id or f"{self.reference}\t{self.distorted}"


def read_pairs(path: str | os.PathLike[str]) -> list[Pair]:
    """The pairs of a .csv, .tsv or .jsonl file with reference, distorted and, optionally, id.

    Relative paths become those that the file means, relative to its own folder; ids are as
    `similis compare --pairs` makes them, from the paths as listed.
    """
    path = pathlib.Path(path)
    if path.suffix not in (".jsonl", ".csv", ".tsv"):
        raise ValueError(f"read_pairs: path is {str(path)!r}; it must end in .csv, .tsv or .jsonl")
    rows: Iterable[Mapping[str, str]]
    with open(path, encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            rows = [json.loads(line) for line in file if line.strip()]
        else:
            rows = list(csv.DictReader(file, delimiter="," if path.suffix == ".csv" else "\t"))
    pairs = []
    for number, row in enumerate(rows, 1):
        if not row.get("reference") or not row.get("distorted"):
            raise ValueError(f"read_pairs: row {number} of {path} has no reference or no distorted")
        listed = Pair(row["reference"], row["distorted"], row.get("id") or "")
        reference, distorted = (str(path.parent / side) for side in listed[:2])
        pairs.append(Pair(reference, distorted, listed.key))
    return pairs


def _as_pairs(pairs: Any) -> list[Pair]:
    if isinstance(pairs, (str, os.PathLike)):
        return _unique(read_pairs(pairs))
    named = [Pair(**pair) if isinstance(pair, Mapping) else Pair(*pair) for pair in pairs]
    return _unique([Pair(*map(os.fspath, pair)) for pair in named])


def _unique(pairs: Sequence[Pair]) -> list[Pair]:
    """Each pair once; one id for two pairs is an error."""
    seen: dict[str, Pair] = {}
    for pair in pairs:
        known = seen.setdefault(pair.key, pair)
        if known[:2] != pair[:2]:
            raise ValueError(f"score: pairs has the id {pair.key!r} for two pairs; ids must differ")
    return list(seen.values())


class Scorer:
    """Scores batches of pairs. It can be pickled, and holds no state between batches.

    metrics: as -m names them, such as ["psnr", "ssim=window_size=7"]; the program's defaults if empty.
    device: "auto", "cpu", "cuda" or "cuda:N".
    threads: pairs that one batch scores at a time.
    program: the program's path; that of this package if None.
    """

    def __init__(self, metrics: Sequence[str] = (), device: str = "auto", threads: int = 1,
                 program: str | os.PathLike[str] | None = None) -> None:
        if isinstance(metrics, str):
            raise TypeError(f"Scorer: metrics is the text {metrics!r}; it must be a list of texts")
        self.metrics, self.device, self.threads = tuple(metrics), device, threads
        self.program = None if program is None else os.fspath(program)

    def __call__(self, batch: Any) -> dict[str, list[Any]]:
        """Columns of a batch in, columns out.

        batch: a mapping of columns, or a pandas.DataFrame, with "reference", "distorted" and,
        optionally, "id". Returns "id", "reference", "distorted", "error" ("" if there is none),
        "row", the JSON that `compare --pairs` writes for the pair, and for each metric a column with
        its mean: NaN for a pair that failed and for video's planes, whose scores are in "row".
        """
        columns = [_texts(batch[name]) for name in ("reference", "distorted")]
        columns.append(_texts(batch["id"]) if "id" in batch else [""] * len(columns[0]))
        rows = self.rows([Pair(*pair) for pair in zip(*columns, strict=True)])
        result: dict[str, list[Any]] = {
            name: [row[name] for row in rows] for name in ("id", "reference", "distorted")}
        result["error"] = [row.get("error", "") for row in rows]
        result["row"] = [json.dumps(row, ensure_ascii=False) for row in rows]
        for metric in self.metrics:
            found = [row.get("metrics", {}).get(metric, {}).get("mean") for row in rows]
            result[metric] = [float("nan") if mean is None else mean for mean in found]
        return result

    def map_in_pandas(self, batches: Iterable[Any]) -> Iterator[Any]:
        """For Spark's mapInPandas: turns an iterator of pandas.DataFrame into another."""
        import pandas

        for batch in batches:
            for start in range(0, len(batch), _BATCH):
                yield pandas.DataFrame(self(batch.iloc[start:start + _BATCH]))

    def rows(self, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
        """The rows of these pairs, in their order."""
        rows: list[dict[str, Any]] = [{} for _ in pairs]
        for row in self._run(pairs)[1:]:
            place = int(row["id"])  # in the batch
            pair = pairs[place]
            row.update(id=pair.key, reference=pair.reference, distorted=pair.distorted)
            rows[place] = row
        return rows

    def header(self) -> dict[str, Any]:
        """The first line of a file of results of these metrics."""
        return self._run([])[0]

    def _run(self, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
        from .__main__ import program as own_program

        with tempfile.TemporaryDirectory(prefix="similis-") as folder:
            pair_list, out = pathlib.Path(folder, "pairs.jsonl"), pathlib.Path(folder, "out.jsonl")
            with open(pair_list, "w", encoding="utf-8") as file:
                for place, pair in enumerate(pairs):
                    file.write(json.dumps({"reference": os.path.abspath(pair.reference),
                                           "distorted": os.path.abspath(pair.distorted),
                                           "id": str(place)}) + "\n")
            metrics = [part for metric in self.metrics for part in ("-m", metric)]
            done = subprocess.run(
                [self.program or own_program(), "compare", "--pairs", pair_list, *metrics, "--device",
                 self.device, "--threads", str(self.threads), "-o", out],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
            if done.returncode not in (_SUCCEEDED, _SOME_FAILED) or not out.exists():
                raise RuntimeError(f"Scorer: {done.stderr.strip() or f'status {done.returncode}'}")
            lines = out.read_text(encoding="utf-8").splitlines()
        if len(lines) != len(pairs) + 1:
            raise RuntimeError(f"Scorer: {done.stderr.strip()}")
        return [json.loads(line) for line in lines]


def _texts(column: Any) -> list[str]:
    return [str(value) for value in column]


class Results:
    """The file of `similis compare --pairs -o`, locked while this is open.

    A torn last line is cut off, and rows with an error are taken out, to be tried again.

    path: the file, which is made if there is none.
    header: its first line, of `Scorer.header`; a file with another is refused with ValueError.
    """

    def __init__(self, path: str | os.PathLike[str], header: Mapping[str, Any]) -> None:
        self._path = pathlib.Path(path)
        self._done: set[str] = set()
        self._file = open(self._path, "ab+", buffering=0)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise RuntimeError(f"{self._path} is being written by another process") from None
        try:
            self._take_over(dict(header))
        except BaseException:
            self._file.close()
            raise
        self._synced = time.monotonic()

    def _take_over(self, header: dict[str, Any]) -> None:
        lines = self._path.read_bytes().split(b"\n")
        torn, lines = lines[-1], lines[:-1]
        if not lines:
            if torn and not _line(header).startswith(torn):
                raise ValueError(f"Results: path is {str(self._path)!r}, which is not a file of results")
            self._file.truncate(0)
            self._file.write(_line(header))
            return
        try:
            first, rows = json.loads(lines[0]), [json.loads(line) for line in lines[1:]]
        except ValueError:
            first, rows = None, []
        if first != header:
            raise ValueError(f"Results: path is {str(self._path)!r}, which has other settings or is "
                             "not a file of results; choose another name")
        kept = [line for line, row in zip(lines[1:], rows, strict=True) if "error" not in row]
        self._done = {row["id"] for row in rows if "error" not in row}
        if len(kept) < len(rows):
            self._replace([lines[0], *kept])
        elif torn:
            self._file.truncate(sum(len(line) + 1 for line in lines))

    def _replace(self, lines: Sequence[bytes]) -> None:
        beside = self._path.with_name(self._path.name + ".partial")
        fresh = open(beside, "wb+", buffering=0)
        fcntl.flock(fresh, fcntl.LOCK_EX)
        fresh.write(b"".join(line + b"\n" for line in lines))
        os.fsync(fresh.fileno())
        os.replace(beside, self._path)
        self._file.close()
        self._file = fresh

    def missing(self, pairs: Iterable[Pair]) -> list[Pair]:
        """Those of the pairs that have no row."""
        return [pair for pair in pairs if pair.key not in self._done]

    def add(self, row: Mapping[str, Any]) -> None:
        """Appends a row in one write; at the latest every five seconds rows are on the disk."""
        self._file.write(_line(row))
        if "error" not in row:
            self._done.add(row["id"])
        if time.monotonic() - self._synced >= _SYNC_SECONDS:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def close(self) -> None:
        """Waits until all rows are on the disk, and unlocks the file."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _line(row: Mapping[str, Any]) -> bytes:
    return (json.dumps(row, ensure_ascii=False) + "\n").encode()


def score(pairs: Any, metrics: Sequence[str], out: str | os.PathLike[str], client: Any = None,
          device: str = "auto", *, program: str | os.PathLike[str] | None = None) -> int:
    """Scores the pairs that `out` does not have yet, and returns how many of them failed.

    Rows are written as batches of 64 complete, by this process alone. A batch whose worker is lost
    is scored by another worker; if that happens again and again its pairs get a row with an error.

    pairs: the path of a list, as read_pairs takes it, or pairs of (reference, distorted[, id]) or
    mappings with these names; on a cluster, paths that every worker can open.
    metrics: as Scorer takes them.
    out: the file of results, .jsonl.
    client: a dask.distributed.Client; None scores here.
    device: as Scorer takes it.
    """
    scorer = Scorer(metrics, device, program=program)
    with Results(out, scorer.header()) as results:
        to_do = results.missing(_as_pairs(pairs))
        batches = (to_do[i:i + _BATCH] for i in range(0, len(to_do), _BATCH))
        failed = 0
        done = _here(scorer, batches) if client is None else _on_dask(scorer, batches, client)
        for rows in done:
            for row in rows:
                results.add(row)
                failed += "error" in row
    return failed


_Rows = list[dict[str, Any]]


def _here(scorer: Scorer, batches: Iterator[Sequence[Pair]]) -> Iterator[_Rows]:
    return map(scorer.rows, batches)


def _on_dask(scorer: Scorer, batches: Iterator[Sequence[Pair]], client: Any) -> Iterator[_Rows]:
    """Results as they come, with a few batches for each thread of the cluster under way."""
    from distributed import KilledWorker, as_completed

    at_once = 2 * max(1, sum(client.nthreads().values()))
    under_way: dict[str, Sequence[Pair]] = {}

    def submitted(batch: Sequence[Pair]) -> Any:
        future = client.submit(scorer.rows, batch, pure=False)
        under_way[future.key] = batch
        return future

    queue = as_completed([submitted(batch) for batch in itertools.islice(batches, at_once)])
    for future in queue:
        batch = under_way.pop(future.key)
        try:
            rows = future.result()
        except KilledWorker:
            rows = [{"id": pair.key, "reference": pair.reference, "distorted": pair.distorted,
                     "error": "the workers that scored its batch died"} for pair in batch]
        for more in itertools.islice(batches, 1):
            queue.add(submitted(more))
        yield rows
