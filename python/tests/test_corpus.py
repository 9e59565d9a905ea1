# SPDX-License-Identifier: Apache-2.0
"""similis.corpus: batches of pairs scored by the program, a file of results that continues, Dask."""

import json
import math
import os
import pathlib
import pickle
import re
import subprocess
import sys

import numpy
import pytest

from similis import corpus

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "tests"))
import png  # noqa: E402

from similis.__main__ import program  # noqa: E402


@pytest.fixture
def pictures(tmp_path):
    """Ten pairs of pictures, of which p3's distorted file is broken, and a list of them."""
    for side, step in ("left", 1), ("right", 8):
        (tmp_path / side).mkdir()
        for i in range(10):
            samples = bytes((x * y + 3 * i) % 256 // step * step for y in range(24) for x in range(20))
            (tmp_path / side / f"p{i}.png").write_bytes(png.encode(samples, 20, channels=1))
    (tmp_path / "right/p3.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    rows = "".join(f"left/p{i}.png,right/p{i}.png,{i}\n" for i in range(10))
    (tmp_path / "pairs.csv").write_text("reference,distorted,id\n" + rows)
    return tmp_path


def by_program(folder, out="program.jsonl", metrics=("psnr", "ssim")):
    names = [part for metric in metrics for part in ("-m", metric)]
    done = subprocess.run([program(), "compare", "--pairs", "pairs.csv", *names, "-o", out],
                          cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr  # one pair is broken
    return rows_of(folder / out)


def rows_of(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return lines[0], {row["id"]: row for row in lines[1:]}


def test_scores_are_the_programs(pictures):
    header, expected = by_program(pictures)
    failed = corpus.score(pictures / "pairs.csv", ["psnr", "ssim"], pictures / "out.jsonl")
    got_header, got = rows_of(pictures / "out.jsonl")
    assert failed == 1 and got_header == header
    assert got.keys() == expected.keys() and "error" in got["3"]
    for key, row in got.items():
        if key != "3":
            assert row["metrics"] == expected[key]["metrics"]
    assert len((pictures / "out.jsonl").read_text().splitlines()) == 11  # each id once


def test_columns_in_columns_out(pictures):
    scorer = pickle.loads(pickle.dumps(corpus.Scorer(["ssim"])))
    _, expected = by_program(pictures, metrics=["ssim"])
    batch = {side: [str(pictures / folder / f"p{i}.png") for i in (1, 3)]
             for side, folder in (("reference", "left"), ("distorted", "right"))}
    got = scorer(batch)
    assert got["ssim"][0] == expected["1"]["metrics"]["ssim"]["mean"] and math.isnan(got["ssim"][1])
    assert got["error"][0] == "" and "p3.png" in got["error"][1]
    assert got["id"] == [f"{r}\t{d}" for r, d in zip(*batch.values())]
    assert json.loads(got["row"][0])["metrics"] == expected["1"]["metrics"]
    assert scorer(batch | {"id": ["a", "b"]})["id"] == ["a", "b"]
    for dtype in object, str:  # the types that Ray's map_batches and pandas hand over
        columns = {side: numpy.array(paths, dtype=dtype) for side, paths in batch.items()}
        assert scorer(columns)["row"] == got["row"]


def test_results_continue_whoever_wrote_them(pictures):
    by_program(pictures)
    whole = (pictures / "program.jsonl").read_bytes()
    kept = whole.splitlines(keepends=True)[:5]
    out = pictures / "out.jsonl"
    out.write_bytes(b"".join(kept) + b'{"id": "9", "refer')  # a torn line
    corpus.score(pictures / "pairs.csv", ["psnr", "ssim"], out)
    good = [line for line in kept if b'"error"' not in line]
    assert out.read_bytes().startswith(b"".join(good))
    assert set(rows_of(out)[1]) == {str(i) for i in range(10)}
    before = rows_of(out)
    corpus.score(pictures / "pairs.csv", ["psnr", "ssim"], out)
    assert rows_of(out) == before
    by_program(pictures, "out.jsonl")  # and the program continues this one
    assert rows_of(out)[1].keys() == before[1].keys()


def test_refusals(pictures):
    out = pictures / "out.jsonl"
    corpus.score([(pictures / "left/p0.png", pictures / "right/p0.png")], ["psnr"], out)
    before = out.read_bytes()
    with pytest.raises(ValueError, match="has other settings"):
        corpus.score([], ["ssim"], out)
    with pytest.raises(ValueError, match="the id 'a' for two pairs"):
        corpus.score([("x", "y", "a"), ("x", "z", "a")], ["psnr"], out)
    with pytest.raises(RuntimeError, match="there is no metric"):
        corpus.score([], ["nonsense"], pictures / "new.jsonl")
    with pytest.raises(TypeError, match="must be a list of texts"):
        corpus.Scorer("psnr")
    with pytest.raises(ValueError, match="must end in"):
        corpus.read_pairs("pairs.txt")
    (pictures / "bad.csv").write_text("reference,distorted\nx,\n")
    with pytest.raises(ValueError, match="row 1 of .*bad.csv has no"):
        corpus.read_pairs(pictures / "bad.csv")
    header = corpus.Scorer(["psnr"]).header()
    with corpus.Results(out, header), pytest.raises(RuntimeError, match="by another process"):
        corpus.Results(out, header)
    (pictures / "notes.txt").write_text("my notes\n")
    with pytest.raises(ValueError, match="is not a file of results"):
        corpus.Results(pictures / "notes.txt", header)
    assert out.read_bytes() == before and (pictures / "notes.txt").read_text() == "my notes\n"
    assert not (pictures / "new.jsonl").exists()


@pytest.fixture
def cluster():
    distributed = pytest.importorskip("distributed", reason="`pip install similis[corpus]`")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True,
                                  dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            yield client


def many(folder, count):
    return [(str(folder / f"left/p{i % 10}.png"), str(folder / f"right/p{i % 10}.png"), str(i))
            for i in range(count)]


def test_dask_scores_the_same(pictures, cluster):
    corpus.score(many(pictures, 150), ["ssim"], pictures / "here.jsonl")
    failed = corpus.score(many(pictures, 150), ["ssim"], pictures / "dask.jsonl", client=cluster)
    assert failed == 15 and rows_of(pictures / "dask.jsonl") == rows_of(pictures / "here.jsonl")


def test_a_lost_worker_loses_nothing(pictures, cluster):
    pairs = many(pictures, 400)
    corpus.score(pairs[:64], ["ssim"], pictures / "first.jsonl")
    pids = list(cluster.run(os.getpid).values())
    killer = subprocess.Popen(["sh", "-c", f"sleep 1; kill -9 {pids[0]}"])
    corpus.score(pairs, ["ssim"], pictures / "dask.jsonl", client=cluster)
    killer.wait()
    _, rows = rows_of(pictures / "dask.jsonl")
    assert set(rows) == {str(i) for i in range(400)}
    assert len((pictures / "dask.jsonl").read_text().splitlines()) == 401
    _, first = rows_of(pictures / "first.jsonl")
    assert all(rows[key] == row for key, row in first.items())


def test_ray_data_takes_the_scorer(pictures):
    ray = pytest.importorskip("ray", reason="ray is not installed")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        items = [{"reference": r, "distorted": d, "id": i} for r, d, i in many(pictures, 20)]
        rows = ray.data.from_items(items).map_batches(corpus.Scorer(["ssim"]), batch_size=8).take_all()
    finally:
        ray.shutdown()
    assert len(rows) == 20 and sum(math.isnan(row["ssim"]) for row in rows) == 2


def test_pandas_batches(pictures):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(many(pictures, 70), columns=["reference", "distorted", "id"])
    (first, second) = corpus.Scorer(["ssim"]).map_in_pandas([frame])
    assert len(first) == 64 and len(second) == 6
    assert list(first.columns) == ["id", "reference", "distorted", "error", "row", "ssim"]


def test_the_pages_examples(pictures, monkeypatch):
    pytest.importorskip("distributed", reason="`pip install similis[corpus]`")
    monkeypatch.chdir(pictures)
    page = (ROOT / "docs/corpora.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert blocks
    for code in blocks:
        (pictures / "example.py").write_text(code)
        done = subprocess.run([sys.executable, "example.py"], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    assert len(rows_of(pictures / "scores.jsonl")[1]) == 10
