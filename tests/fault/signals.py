"""Signals, pipes and terminals around gpurun: signals.py GPURUN WHAT. Prints what went wrong."""

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import struct
import time

from processes import count_lines, finish, interrupt, is_gone, soon, start, start_piped, wait_for, wait_for_hangs

HANGING = "[global]\nplugin = mirror\nrepeat = 1\nwarmup = 0\ndevice = cpu\n[quick]\n[hang]\nmisbehave = hang\n[after]\n"
MANY = "[global]\nplugin = mirror\nrepeat = 1\nwarmup = 0\ndevice = cpu\n"


def full_pipe():
    """A pipe that nobody reads and that takes no more."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    return reader, writer


def twice(gpurun):
    """The first signal's ending blocks on a full pipe; the second ends it at once."""
    for number in (signal.SIGINT, signal.SIGTERM):
        with open("hang.ini", "w", encoding="ascii") as f:
            f.write(HANGING.replace("[quick]\n", ""))
        reader, writer = full_pipe()
        batch = start([gpurun, "hang.ini", "--records", f"twice{number}.jsonl"], stdout=writer)
        [worker] = wait_for_hangs(1)
        end_s = soon(batch, 0.5) - time.monotonic()
        batch.send_signal(number)
        wait_for(lambda: count_lines(f"twice{number}.jsonl") == 2, "the records")
        time.sleep(0.3)
        assert batch.poll() is None, "it did not block"
        before = time.monotonic()
        batch.send_signal(number)
        finish(batch, 130)
        assert time.monotonic() - before < end_s, "not at once"
        wait_for(lambda: is_gone(worker), "the worker's end")
        os.close(reader)
        os.close(writer)
        lines = open(f"twice{number}.jsonl", encoding="ascii").read().splitlines()
        assert [json.loads(line)["status"] for line in lines] == ["interrupted"] * 2, lines


def resume(gpurun):
    """What was interrupted runs with --resume, and nothing twice."""
    with open("hang.ini", "w", encoding="ascii") as f:
        f.write(HANGING)
    batch = start([gpurun, "hang.ini", "--records", "r.jsonl"], stdout=subprocess.DEVNULL)
    wait_for_hangs(1)
    interrupt(batch, signal.SIGINT)
    with open("hang.ini", "w", encoding="ascii") as f:
        f.write(HANGING.replace("misbehave = hang", "misbehave = no"))
    out = subprocess.run(
        [gpurun, "hang.ini", "--records", "r.jsonl", "--resume"], capture_output=True, text=True, check=False
    )
    assert out.returncode == 0, out
    assert "PASSED: 3 of 3 cases passed; 1 resumed" in out.stdout, out.stdout
    records = [json.loads(line) for line in open("r.jsonl", encoding="ascii")]
    passed = [r["job"] for r in records if r["status"] == "passed"]
    assert sorted(passed) == ["hang.ini:after", "hang.ini:hang", "hang.ini:quick"], passed
    report = subprocess.run([gpurun, "report", "r.jsonl"], capture_output=True, text=True, check=False)
    assert "3 of" in report.stdout and report.stdout.count("INTERRUPTED") == 1, report.stdout


def checking(gpurun):
    """A signal while the batch is validated: nothing has run, 130."""
    with open("check.ini", "w", encoding="ascii") as f:
        f.write("[a]\nplugin = mirror\nmisbehave = hang\nhook = setup\n")
    for number in (signal.SIGINT, signal.SIGTERM):
        for words in ([], ["check"], ["--dry-run"]):
            batch = start_piped([gpurun, *words, "check.ini"])
            [worker] = wait_for_hangs(1)
            out, err = interrupt(batch, number)
            assert out == "" and err == "", (out, err)
            wait_for(lambda: is_gone(worker), "the worker's end")


def head(gpurun):
    """A reader that has seen enough: no word, no worker left, all records so far whole."""
    with open("many.ini", "w", encoding="ascii") as f:
        f.write(MANY + "".join(f"[job{i}]\n" for i in range(100)))
    for words in ([], ["--json"], ["--csv"]):
        for ignored in (False, True):
            path = f"head{len(os.listdir())}.jsonl"
            args = [gpurun, "many.ini", "--records", path, *words]
            if ignored:  # as from a program that ignores SIGPIPE itself
                args = ["python3", "-c", "import os, signal, sys\nsignal.signal(signal.SIGPIPE, signal.SIG_IGN)\n"
                        "os.execv(sys.argv[1], sys.argv[1:])"] + args
            batch = start(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            batch.stdout.readline()
            batch.stdout.close()
            err = batch.stderr.read()
            assert batch.wait(60) == -signal.SIGPIPE, batch.returncode
            ended = re.compile(rb"gpurun: \d+ of 100: many.ini:job\d+ cpu: passed, [0-9.e+-]+ ms")
            assert all(ended.fullmatch(line) for line in err.splitlines()), err
            for line in open(path, "rb").read().splitlines():
                json.loads(line)
    shown = subprocess.run(
        f"'{gpurun}' many.ini | head -n 1", shell=True, capture_output=True, text=True, check=False
    )
    assert shown.stdout == "many.ini:job0\n", shown


def terminal(gpurun):
    """On a terminal: how far it is, what runs, in one line that fits; nothing of it stays."""
    with open("many.ini", "w", encoding="ascii") as f:
        f.write(MANY + "[wrong]\nmisbehave = wrong\n" + "".join(f"[job{i}]\n" for i in range(5)))
    for columns in (100, 30):
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        batch = start([gpurun, "many.ini"], stdout=subprocess.PIPE, stderr=child)
        os.close(child)
        seen = b""
        batch.stdout.read()
        try:
            while piece := os.read(parent, 4096):
                seen += piece
        except OSError:
            pass
        os.close(parent)
        finish(batch, 1)
        text = seen.decode()
        lines = text.split("\r\x1b[K")
        assert max(map(len, lines)) < columns, lines
        assert lines[-1] == "", "the last line stays"
        wanted = ["0 of 6 cases done, [0-9]+s: many.i", "2 of 6 cases done, 1 not pass"]
        if columns == 100:
            wanted.append("5 of 6 cases done, 1 not passed, [0-9]+s, about [0-9]+s left: many.ini:job4")
        for want in wanted:
            assert any(re.match(want, line) for line in lines), (want, lines)


def main():
    globals()[sys.argv[2]](sys.argv[1])


main()
