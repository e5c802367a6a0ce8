"""Many workers: pool.py GPURUN WHAT. GPURUN is the program with pretend devices; prints what went wrong."""

import json
import os
import random
import re
import signal
import sys

from processes import Killer, finish, interrupt, is_gone, start_piped, wait_for, wait_for_hangs

HEAD = "[global]\nplugin = mirror\nrepeat = 1\nwarmup = 0\n"
PAIR = {"GPURUN_FAKE_DEVICES": "2"}


def write(name, *jobs, head=HEAD):
    with open(name, "w", encoding="ascii") as f:
        f.write(head + "".join(jobs))


def equal_jobs(count, more=""):
    return [f"[job{i}]\n{more}" for i in range(count)]


def start(gpurun, *args, env=None):
    return start_piped([gpurun, *args], env=env)


def run(gpurun, *args, env=None, code=0):
    return finish(start(gpurun, *args, env=env), code)


def read(path):
    """The whole lines of a file of records."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as f:
        return [json.loads(line) for line in f.read().split("\n")[:-1]]


def hang_two(gpurun, *args):
    """A batch whose two workers both hang, and those two."""
    write("two.ini", "[quick]\n", *["[hang%d]\nmisbehave = hang\n" % i for i in (0, 1)], "[after]\n")
    if os.path.exists("two.jsonl"):
        os.remove("two.jsonl")
    batch = start(gpurun, "two.ini", "--workers", "2", "-s", "device=cpu", "--records", "two.jsonl", *args)
    return batch, wait_for_hangs(2)


def statuses(path):
    return {r["job"].split(":")[1]: r["status"] for r in read(path)}


def order(gpurun):
    """Records come as cases end; tables and documents in the order of the file."""
    write("order.ini", "[slow]\nmisbehave = hang\n", *equal_jobs(5))
    args = ("order.ini", "-s", "device=cpu", "--workers", "2", "--records")
    names = ["order.ini:slow"] + [f"order.ini:job{i}" for i in range(5)]
    outs = []
    for path, how in (("document.jsonl", ["--json"]), ("table.jsonl", [])):
        batch = start(gpurun, *args, path, *how)
        wait_for(lambda: len(read(path)) == 5, "the other worker's records")
        os.kill(wait_for_hangs(1)[0], signal.SIGKILL)
        outs.append(finish(batch, 1)[0])
        assert [r["job"] for r in read(path)] == names[1:] + names[:1]
    document, out = outs
    assert [r["job"] for r in json.loads(document)["records"]] == names
    assert re.findall(r"^(order.ini:\w+)$", out, re.M) == names, out


def shared(gpurun):
    """Two devices share equal jobs, each case once; a job that names one gets it."""
    write("pair.ini", *equal_jobs(40, "variant = copy\ncpu = off\nn = 300000\nrepeat = 5\n"), "[named]\ndevice = 1\nvariant = copy\n")
    out, err = run(gpurun, "pair.ini", "--devices", "all", "--json", env=PAIR)
    records = [r for r in json.loads(out)["records"] if r["variant"] == "copy"]
    counts = [sum(r["device"] == f"gpu:{i}" for r in records) for i in (0, 1)]
    assert sum(counts) == 41 and min(counts) > 5, counts
    assert {r["environment"]["device_uuid"][-1] for r in records} == {"0", "1"}
    assert [r["device"] for r in records if r["job"] == "pair.ini:named"] == ["gpu:1"]
    out, _ = run(gpurun, "pair.ini", "--only", "*:job?", "--devices", "1", "--json", env=PAIR)
    assert {r["device"] for r in json.loads(out)["records"]} == {"gpu:1"}
    assert err.count("\n") == 42 and "gpurun: 42 of 42: " in err, err


def killed_worker(gpurun):
    """kill -9 of one of two: its case is crashed, the other worker does not notice, the batch goes on."""
    batch, workers = hang_two(gpurun, "--timeout", "3s")
    os.kill(workers[0], signal.SIGKILL)
    finish(batch, 1)
    got = statuses("two.jsonl")
    assert sorted(got.values()) == ["crashed", "passed", "passed", "timeout"], got
    assert got["quick"] == got["after"] == "passed", got


def interrupted(gpurun):
    """Ctrl-C with two at work: at once, all recorded, nobody left; --resume runs the rest."""
    for number in (signal.SIGINT, signal.SIGTERM):
        batch, workers = hang_two(gpurun)
        out, err = interrupt(batch, number)
        assert "INTERRUPTED: 1 of 4" in out, (out, err)
        got = statuses("two.jsonl")
        assert got == {"quick": "passed", "hang0": "interrupted", "hang1": "interrupted", "after": "interrupted"}, got
        wait_for(lambda: all(map(is_gone, workers)), "the workers' end")
    write("two.ini", "[quick]\n", "[hang0]\n", "[hang1]\n", "[after]\n")
    args = ("two.ini", "--workers", "2", "-s", "device=cpu", "--records", "two.jsonl", "--resume")
    out, _ = run(gpurun, *args)
    assert "PASSED: 4 of 4 cases passed; 1 resumed" in out, out
    assert len(read("two.jsonl")) == 7


def fail_fast(gpurun):
    """The first failure stops both workers; what has no record is counted."""
    write("fast.ini", "[hang]\nmisbehave = hang\n", "[wrong]\nmisbehave = wrong\n", *equal_jobs(3))
    args = ("fast.ini", "-s", "device=cpu", "--workers", "2", "--fail-fast", "--records", "fast.jsonl")
    out, err = run(gpurun, *args, code=1)
    assert statuses("fast.jsonl") == {"wrong": "failed"}, read("fast.jsonl")
    assert "stopped at the first failure (--fail-fast): 4 jobs not run" in err, err
    assert "hang" not in out, out


def retries(gpurun):
    """A case is tried again by its own worker, while the other goes on."""
    write("again.ini", "[crash]\nmisbehave = crash\nretries = 2\n", *equal_jobs(4))
    _, err = run(gpurun, "again.ini", "-s", "device=cpu", "--workers", "2", "--records", "again.jsonl", code=1)
    assert "tried again, 2 of 2" in err, err
    got = {r["job"].split(":")[1]: (r["status"], r["attempts"]) for r in read("again.jsonl")}
    assert got == {"crash": ("crashed", 3), **{f"job{i}": ("passed", 1) for i in range(4)}}, got


def lost(gpurun):
    """One of two devices is lost: it costs the job that met it, unless that may be tried again; the other does
    the rest."""
    env = {**PAIR, "GPURUN_FAKE_LOST": "gone"}
    said = "gpurun: gpu:1 is lost: the fake device fell off the bus: its jobs go to the others"
    write("lost.ini", *equal_jobs(60, "variant = copy, peer\nn = 100000\n"), "[named]\ndevice = 1\nvariant = copy\n")
    for retries in (0, 1):
        path = f"lost{retries}.jsonl"
        args = ("--devices", "0,1", "--records", path, "-s", f"retries={retries}")
        if retries:
            os.remove("gone")
        batch = start(gpurun, "lost.ini", *args, env=env)
        wait_for(lambda: any(r["device"] == "gpu:1" for r in read(path)), "a record of gpu:1")
        open("gone", "w", encoding="ascii").close()
        out, err = finish(batch, 1)
        assert said in err, (out, err)
        records = read(path)
        assert len({(r["job"], r["variant"]) for r in records}) == len(records) == 60 * 3 + 2
        bad = {r["job"] for r in records if r["status"] != "passed"}
        assert "lost.ini:named" in bad and len(bad) <= 2 - retries, bad

    # One that was lost before costs nothing, but what names it.
    out, err = run(gpurun, "lost.ini", "--devices", "all", "--json", env=env, code=1)
    records = json.loads(out)["records"]
    assert said in err and len(records) == 60 * 3 + 2
    bad = {(r["job"], r["reason"]) for r in records if r["status"] != "passed"}
    assert bad == {("lost.ini:named", "the fake device fell off the bus")}, bad

    # With one device there is nobody to go on: each case says so.
    out, err = run(gpurun, "lost.ini", "--only", "*:job?", "--devices", "1", "--json", env=env, code=1)
    assert "is lost" not in err
    assert {r["status"] for r in json.loads(out)["records"] if r["variant"] != "cpu"} == {"error"}


def cores(gpurun):
    """Each worker has its part of the cores, and `threads = auto` is that."""
    write("cores.ini", *equal_jobs(6))
    all_cpus = len(os.sched_getaffinity(0))
    for workers in (1, 2, all_cpus + 1):
        out, _ = run(gpurun, "cores.ini", "-s", "device=cpu", "--workers", str(workers), "--json")
        got = {r["environment"]["threads"] for r in json.loads(out)["records"]}
        want = {max(1, all_cpus // workers), max(1, -(-all_cpus // workers))}
        assert got <= want, (workers, got, want)


def killed(gpurun):
    """The parent is killed at random moments; --resume with two workers: each case once."""
    jobs, kills, killer = 80, 30, Killer("kills.jsonl", random.Random(20261130))
    write("kills.ini", *equal_jobs(jobs, "n = 10\n"))
    args = ("kills.ini", "-s", "device=cpu", "--workers", "2", "--records", "kills.jsonl", "--resume")
    while killer.kills < kills:
        killer.kill(lambda: start(gpurun, *args))
        names = [r["job"] for r in read("kills.jsonl")]
        assert len(names) == len(set(names)), "a case twice"
        if len(names) > jobs * 2 // 3:
            os.remove("kills.jsonl")
    out, _ = run(gpurun, *args, "--json")
    assert [r["job"] for r in json.loads(out)["records"]] == [f"kills.ini:job{i}" for i in range(jobs)]
    assert len(read("kills.jsonl")) == jobs
    assert killer.during > kills // 2, killer.during


def sharded(gpurun):
    """Parts of a batch, each with two workers, are the whole."""
    write("parts.ini", *equal_jobs(20))
    for part in (1, 2):
        run(gpurun, "parts.ini", "-s", "device=cpu", "--workers", "2", "--shard", f"{part}/2", "--records", f"p{part}.jsonl")
    names = [r["job"] for part in (1, 2) for r in read(f"p{part}.jsonl")]
    assert sorted(names) == sorted(f"parts.ini:job{i}" for i in range(20)), names


globals()[sys.argv[2]](sys.argv[1])
