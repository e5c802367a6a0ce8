"""Locks between gpuruns: locks.py GPURUN WHAT. GPURUN is the program with pretend devices; prints what went
wrong."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time

from processes import children, finish, hanging, interrupt, soon, start_piped, wait_for

FOLDER = os.environ["GPURUN_LOCK_DIR"]
DEVICE = FOLDER + "/gpurun-GPU-00000000-0000-0000-0000-000000000000.lock"
SECOND = DEVICE[:-6] + "1.lock"
CPU = FOLDER + "/gpurun-cpu.lock"
IN_USE = "gpurun: gpu:0 is in use by another gpurun, process %d: waiting for it; Ctrl-C ends this\n"


def write(name, text):
    with open(name, "w", encoding="ascii") as f:
        f.write("[global]\nplugin = mirror\nrepeat = 1\nwarmup = 0\n" + text)


def start(gpurun, *args, **env):
    return start_piped([gpurun, *args], env=env)


def owner(path):
    """The process that has the lock, by the kernel's list; 0: nobody."""
    inode = os.stat(path).st_ino if os.path.exists(path) else 0
    with open("/proc/locks", encoding="ascii") as f:
        for line in f.read().splitlines():
            words = line.split()  # "1: FLOCK ADVISORY WRITE 4711 08:01:131 0 EOF"
            if words[1] == "FLOCK" and int(words[5].split(":")[2]) == inode:
                return int(words[4])
    return 0


def hang(gpurun):
    """A batch that holds device 0."""
    write("hang.ini", "[hang]\nvariant = hang\n")
    batch = start(gpurun, "hang.ini", "--timeout", "100s")
    wait_for(lambda: owner(DEVICE) == batch.pid, "the lock")
    return batch


def waiting(gpurun):
    """The second says once who has the device, waits, and goes on when the first has ended."""
    write("job.ini", "[a]\nvariant = copy\n[b]\nvariant = copy\n")
    first = hang(gpurun)
    second = start(gpurun, "job.ini")
    assert second.stderr.readline() == IN_USE % first.pid
    time.sleep(0.5)
    assert second.poll() is None
    end = soon(first, 5)
    interrupt(first, signal.SIGINT)
    out, err = finish(second, 0)
    assert time.monotonic() < end
    assert err == "", "said more than once: " + err
    assert "PASSED: 4 of 4" in out
    assert owner(DEVICE) == 0 and os.stat(DEVICE).st_mode & 0o777 == 0o444
    assert os.path.getsize(DEVICE) == 0


def interrupted(gpurun):
    """Ctrl-C while it waits: at once, its jobs are recorded as interrupted."""
    write("job.ini", "[a]\nvariant = copy\n")
    first = hang(gpurun)
    second = start(gpurun, "job.ini", "--records", "i.jsonl")
    assert second.stderr.readline() == IN_USE % first.pid
    interrupt(second, signal.SIGINT)
    assert {json.loads(line)["status"] for line in open("i.jsonl", encoding="ascii")} == {"interrupted"}
    first.kill()
    finish(first, -9)


def crashed_owner(gpurun):
    """The lock of a gpurun that was killed is gone with it, however it was."""
    write("job.ini", "[a]\nvariant = copy\n")
    first = hang(gpurun)
    second = start(gpurun, "job.ini")
    assert second.stderr.readline() == IN_USE % first.pid
    first.kill()
    finish(first, -9)
    finish(second, 0)
    _, err = finish(start(gpurun, "job.ini"), 0)
    assert err == "", err


def other_device(gpurun):
    """What needs another device, or none, does not wait; a pool does what it can with those that are free."""
    write("job.ini", "".join(f"[j{i}]\nvariant = copy\n" for i in range(6)))
    first = hang(gpurun)
    for args in (("-s", "device=1"), ("-s", "device=cpu"), ("--devices", "1"), ("--dry-run",)):
        _, err = finish(start(gpurun, "job.ini", *args, GPURUN_FAKE_DEVICES="2"), 0)
        assert err == "", (args, err)
    pool = start(gpurun, "job.ini", "--devices", "0,1", "--json", GPURUN_FAKE_DEVICES="2")
    out, err = finish(pool, 0)
    assert {r["device"] for r in json.loads(out)["records"]} == {"cpu", "gpu:1"}
    assert err == IN_USE % first.pid, err
    first.kill()
    finish(first, -9)


def replaced_worker(gpurun):
    """The device stays this gpurun's while a worker that died is replaced."""
    write("job.ini", "[a]\nvariant = crash, copy\n[b]\nvariant = hang\n")
    batch = start(gpurun, "job.ini", "--records", "w.jsonl")
    owners = []
    wait_for(lambda: owner(DEVICE) != 0, "the lock")
    while batch.poll() is None and (len(owners) < 20 or not hanging()):
        owners.append(owner(DEVICE))
    assert set(owners) == {batch.pid}, set(owners)
    assert open("w.jsonl", encoding="ascii").read().count("crashed") == 1
    batch.kill()
    finish(batch, -9)


def traps(gpurun):
    """Whatever is in the lock's place: it comes to no harm, and the batch runs, with a word."""
    write("job.ini", "[a]\nvariant = copy\n")
    precious = os.path.abspath("precious")
    for trap in ("link", "dangling", "pipe", "folder"):
        for path in (DEVICE, CPU):
            if os.path.lexists(path):
                os.remove(path)
            with open(precious, "w", encoding="ascii") as f:
                f.write("precious")
            if trap == "link":
                os.symlink(precious, path)
            elif trap == "dangling":
                os.symlink(os.path.abspath("nothing"), path)
            elif trap == "pipe":
                os.mkfifo(path)
            else:
                os.mkdir(path)
        _, err = finish(start(gpurun, "job.ini"), 0)
        assert err.count("\n") == 2, (trap, err)
        assert f"gpurun: gpu:0 cannot be locked: {DEVICE}" in err and "let no other gpurun use it" in err, err
        assert f"gpurun: timing on the CPU cannot be locked: {CPU}" in err, err
        assert open(precious, encoding="ascii").read() == "precious" and not os.path.exists("nothing")
        for path in (DEVICE, CPU):
            os.rmdir(path) if trap == "folder" else os.remove(path)


def folder(gpurun):
    """No such folder: a word, and the batch runs. No HOME, a strict umask: no matter."""
    write("job.ini", "[a]\nvariant = copy\n")
    _, err = finish(start(gpurun, "job.ini", GPURUN_LOCK_DIR="/nonexistent/folder"), 0)
    assert err.count("No such file or directory") == 2, err
    os.umask(0o077)
    keep = {name: os.environ[name] for name in ("GPURUN_PLUGIN_PATH", "GPURUN_LOCK_DIR")}
    done = subprocess.run([gpurun, "job.ini"], env=keep, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done
    assert os.stat(DEVICE).st_mode & 0o777 == 0o444


def cpu(gpurun):
    """Timing on the CPU waits for whoever else does it, and the job's time-out does not run meanwhile."""
    write("job.ini", "[a]\ndevice = cpu\ntimeout = 700ms\n[b]\nvariant = copy\ntimeout = 700ms\n")
    with open(CPU, "w", encoding="ascii") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        batch = start(gpurun, "job.ini")
        time.sleep(2)
        assert batch.poll() is None
    _, err = finish(batch, 0)
    assert err == "", err
    # What times no CPU does not wait.
    with open(CPU, "w", encoding="ascii") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        finish(start(gpurun, "job.ini", "--only", "*:b", "-s", "cpu=off"), 0)
        batch = start(gpurun, "job.ini", "--only", "*:a")
        time.sleep(1)
        interrupt(batch, signal.SIGINT)


def turn(gpurun):
    """A worker that is killed while it times the CPU gives its turn to the other."""
    write("job.ini", "[long]\nrepeat = 1000000\nmax_time = 50s\n[other]\nn = 5000000\n")
    batch = start(gpurun, "job.ini", "-s", "device=cpu", "--workers", "2", "--records", "t.jsonl")
    wait_for(lambda: owner(CPU) == batch.pid, "the turn")
    time.sleep(1)
    assert os.path.getsize("t.jsonl") == 0, "two timed the CPU at once"
    os.kill(children(batch.pid)[0], signal.SIGKILL)
    finish(batch, 1)
    got = {r["job"]: (r["status"], r["reason"][:6]) for r in map(json.loads, open("t.jsonl", encoding="ascii"))}
    assert got == {"job.ini:long": ("crashed", "rounds"), "job.ini:other": ("passed", "")}, got


globals()[sys.argv[2]](sys.argv[1])
