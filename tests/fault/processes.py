"""What the scripts here share: a gpurun with its signals as in a terminal, waiting, and whose child is whose."""

import signal
import subprocess
import time


def start(args, **more):
    """gpurun with its signals as in a terminal."""
    return subprocess.Popen(
        args,
        preexec_fn=lambda: [
            signal.signal(s, signal.SIG_DFL) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)
        ],
        **more,
    )


def start_piped(args, env=None):
    """The same; finish() gets what it prints."""
    return start(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def finish(batch, code, timeout_s=60):
    """What a batch of start_piped() printed, once it has ended with `code`."""
    out, err = batch.communicate(timeout=timeout_s)
    assert batch.returncode == code, (batch.returncode, out, err)
    return out, err


def wait_for(condition, what):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "waited in vain: " + what
        time.sleep(0.01)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(word) for word in f.read().split()]
