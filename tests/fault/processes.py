"""What the scripts here share: a gpurun with its signals as in a terminal, waiting, whose child is whose, and kills."""

import os
import signal
import subprocess
import time

HANGS = os.path.abspath("hangs")
MOST_AHEAD = 20


def start(args, env=None, **more):
    """gpurun with its signals as in a terminal; plugins that hang say so in HANGS."""
    batch = subprocess.Popen(
        args,
        env={**os.environ, "MISBEHAVE_HANGS": HANGS, **(env or {})},
        preexec_fn=lambda: [
            signal.signal(s, signal.SIG_DFL) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)
        ],
        **more,
    )
    batch.begun = time.monotonic()
    return batch


def start_piped(args, env=None):
    """The same; finish() gets what it prints."""
    return start(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def finish(batch, code, timeout_s=100):
    """What a batch of start_piped() printed, once it has ended with `code`."""
    out, err = batch.communicate(timeout=timeout_s)
    assert batch.returncode == code, (batch.returncode, out, err)
    return out, err


def soon(batch, least_s=2):
    """A time that is near: so long, or on a busy machine ten times what the batch took to come to where it is."""
    now = time.monotonic()
    return now + max(least_s, 10 * (now - batch.begun))


def interrupt(batch, number):
    """The same as finish(), of a batch that gets the signal, and ends soon."""
    end = soon(batch)
    batch.send_signal(number)
    said = finish(batch, 130)
    assert time.monotonic() < end, "it took its time"
    return said


def wait_for(condition, what):
    """The bound is for what never comes: a busy machine may take many times what is usual."""
    end = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < end, "waited in vain: " + what
        time.sleep(0.01)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


def is_gone(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def count_lines(path):
    """The whole ones."""
    return open(path, "rb").read().count(b"\n") if os.path.exists(path) else 0


def hanging():
    """The processes whose plugins hang."""
    if not os.path.exists(HANGS):
        return []
    with open(HANGS, encoding="ascii") as f:
        return [int(line) for line in f.read().split("\n")[:-1] if not is_gone(line)]


def wait_for_hangs(count):
    wait_for(lambda: len(hanging()) == count, f"{count} that hang")
    return hanging()


class Killer:
    """Kills batches that go on from the same file of records, at random places. Those are told by work done, not by
    time: a busy machine comes as far."""

    def __init__(self, path, rng):
        self.path = path
        self.rng = rng
        self.start_s = 0  # from a batch's start to its first record, lately
        self.kills = self.during = 0

    def wait(self, lines, batch):
        while batch.poll() is None and count_lines(self.path) < lines:
            time.sleep(0.001)

    def kill(self, start_batch):
        """Some records on, and then within a record's time; a fifth of them while the batch starts."""
        done, before = count_lines(self.path), time.monotonic()
        ahead = max(0, self.rng.randint(-MOST_AHEAD // 4, MOST_AHEAD))
        with start_batch() as batch:
            span_s = self.start_s
            if ahead > 0:
                self.wait(done + 1, batch)
                self.start_s = time.monotonic() - before
                self.wait(done + ahead, batch)
                span_s = (time.monotonic() - before) / ahead
            time.sleep(self.rng.random() * span_s)
            batch.kill()
            self.during += batch.wait() == -signal.SIGKILL
        self.kills += 1
