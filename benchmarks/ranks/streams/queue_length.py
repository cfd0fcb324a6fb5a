"""How many kernels wait in a stream before the host has to: the first launch that takes long, behind a sleeping one."""

import json
import time

import torch

CYCLES, LONG, MOST = 2_000_000_000, 0.05, 5000


def launches_until_full(streams):
    """On each of `streams` in turn."""
    torch.cuda.synchronize()
    for stream in streams:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(CYCLES)
    for count in range(MOST):
        before = time.perf_counter()
        with torch.cuda.stream(streams[count % len(streams)]):
            x.add_(1)
        if time.perf_counter() - before > LONG:
            return count
    return None


x = torch.zeros(1, device="cuda")
with torch.cuda.stream(torch.cuda.Stream()):
    x.add_(1)
print(json.dumps({"one": launches_until_full([torch.cuda.Stream()])}), flush=True)
print(json.dumps({"two": launches_until_full([torch.cuda.Stream(), torch.cuda.Stream()])}), flush=True)
