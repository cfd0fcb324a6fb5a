"""Snapshots written by hand, in the form of torch's."""

import pickle

from peaksight.postmortem.snapshots import read_snapshot

MIB = 1 << 20
BASE = 140 << 40
SCRIPT = {"filename": "/home/me/project/train.py", "line": 40, "name": "<module>"}


def frame(filename, name="f", line=1):
    """One frame; a name without a slash is one of the script's folder."""
    return {"filename": filename if "/" in filename else f"/home/me/project/{filename}", "line": line, "name": name}


def of_torch(path, name, line=1):
    """A frame of an installed torch."""
    return frame(f"/opt/conda/lib/python3.11/site-packages/torch/{path}", name, line)


CALL = of_torch("nn/modules/module.py", "_call_impl")
APPLY = of_torch("nn/modules/module.py", "_apply")
STEP = of_torch("optim/optimizer.py", "profile_hook_step")


class Script:
    """Writes the trace of a made-up run whose every block has a segment of its own, unless told otherwise."""

    def __init__(self):
        self.events = []
        self.now = 1_000_000

    def add(self, action, addr, size, frames=None, **more):
        self.now += 10
        entry = {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": self.now} | more
        self.events.append(entry if frames is None else entry | {"frames": frames})
        return self

    def segment(self, slot, size=20 * MIB):
        return self.add("segment_alloc", address(slot), size)

    def alloc(self, slot, size, *frames, offset=0):
        return self.add("alloc", address(slot) + offset, size, list(frames))

    def free(self, slot, size, *, offset=0):
        self.add("free_requested", address(slot) + offset, size)
        return self.add("free_completed", address(slot) + offset, size)

    def oom(self, size, free, *frames):
        self.now += 10
        entry = {"action": "oom", "device_free": free, "size": size, "stream": 0, "time_us": self.now}
        self.events.append(entry | {"frames": list(frames)})
        return self

    def snapshot(self, segments=(), **more):
        return {"segments": list(segments), "device_traces": [self.events], "allocator_settings": {}} | more


def address(slot):
    """The address of a segment."""
    return BASE + slot * 64 * MIB


def block(size, requested_size, *frames, state="active_allocated", **more):
    """A block of a segment."""
    return {"size": size, "requested_size": requested_size, "state": state, "frames": list(frames)} | more


def segment(slot, *blocks, **more):
    """A segment that its blocks fill."""
    size = sum(one["size"] for one in blocks)
    facts = {"device": 0, "address": address(slot), "total_size": size, "stream": 0, "segment_type": "large"}
    return facts | {"blocks": list(blocks)} | more


def recordings_of(snapshot, tmp_path, protocol=4):
    """What reading `snapshot` gives."""
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(snapshot, protocol))
    return read_snapshot(path)


def recording_of(snapshot, tmp_path):
    """The same, of a snapshot of one device."""
    (recording,) = recordings_of(snapshot, tmp_path)
    return recording
