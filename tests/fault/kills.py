"""Kills a batch at random moments and resumes it: each case is recorded exactly once, no torn line is
believed. kills.py GPURUN KILLS SEED; prints what was done."""

import json
import os
import random
import subprocess
import sys

from processes import Killer, start

JOBS = 80
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


def main():
    gpurun, kills, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    killer = Killer(RECORDS, random.Random(seed))
    finished = 0
    write_batch()
    while killer.kills < kills:
        killer.kill(
            lambda: start(
                [gpurun, "batch.ini", "--records", RECORDS, "--resume"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
        jobs = read_jobs()
        assert len(set(jobs)) == len(jobs), "a case twice"
        if len(jobs) > JOBS * 2 // 3:
            run_to_end(gpurun)
            os.remove(RECORDS)
            finished += 1
    run_to_end(gpurun)
    print(f"{killer.during} of {kills} kills while it ran; {finished + 1} batches finished")
    assert killer.during > kills // 2, "too few kills met a running batch"
    assert finished > 0, "no batch came far"


main()
