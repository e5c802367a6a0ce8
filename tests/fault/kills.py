"""Kills a batch at random moments and resumes it: each case is recorded exactly once, no torn line is
believed. kills.py GPURUN KILLS SEED; prints what was done."""

import json
import os
import random
import subprocess
import sys
import time

JOBS = 80
MOST_AHEAD = 20
RECORDS = "killed.jsonl"


def write_batch():
    with open("batch.ini", "w", encoding="ascii") as f:
        f.write("[global]\nplugin = mirror\ndevice = cpu\nrepeat = 1\nwarmup = 0\nn = 10\n")
        for i in range(JOBS):
            f.write(f"[job{i}]\n")


def read_jobs():
    """Names of the jobs with a whole line; every line but the last is whole."""
    if not os.path.exists(RECORDS):
        return []
    with open(RECORDS, encoding="ascii") as f:
        lines = f.read().split("\n")
    lines.pop()  # empty, or torn
    records = [json.loads(line) for line in lines]
    assert all(r["status"] == "passed" for r in records), "a case did not pass"
    return [r["job"] for r in records]


def run_to_end(gpurun):
    end = subprocess.run(
        [gpurun, "batch.ini", "--records", RECORDS, "--resume", "--json"],
        stdout=subprocess.PIPE,
        check=False,
    )
    assert end.returncode == 0, end.returncode
    jobs = read_jobs()
    assert sorted(jobs) == sorted(f"batch.ini:job{i}" for i in range(JOBS)), "not each once"
    shown = [r["job"] for r in json.loads(end.stdout)["records"]]
    assert shown == [f"batch.ini:job{i}" for i in range(JOBS)], "not all are shown, in order"


def wait_for(lines, batch):
    """Until the records have so many lines. By work done, not by time: a busy machine comes as far."""
    while batch.poll() is None and len(read_jobs()) < lines:
        time.sleep(0.001)


def main():
    gpurun, kills, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    during = finished = 0
    write_batch()
    before = time.monotonic()
    run_to_end(gpurun)
    whole_s = time.monotonic() - before
    os.remove(RECORDS)
    done = 0
    for _ in range(kills):
        ahead = max(0, rng.randint(-MOST_AHEAD // 4, MOST_AHEAD))
        span_s = whole_s / (MOST_AHEAD if ahead else 4)  # a fifth of the kills, while it starts
        with subprocess.Popen(
            [gpurun, "batch.ini", "--records", RECORDS, "--resume"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as batch:
            wait_for(done + ahead, batch)
            time.sleep(rng.random() * span_s)
            batch.kill()
            during += batch.wait() == -9
        jobs = read_jobs()
        assert len(set(jobs)) == len(jobs), "a case twice"
        done = len(jobs)
        if done > JOBS * 2 // 3:
            run_to_end(gpurun)
            os.remove(RECORDS)
            finished += 1
            done = 0
    run_to_end(gpurun)
    print(f"{during} of {kills} kills while it ran; {finished + 1} batches finished")
    assert during > kills // 2, "too few kills met a running batch"
    assert finished > 0, "no batch came far"


main()
