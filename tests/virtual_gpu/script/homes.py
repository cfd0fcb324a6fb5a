"""A person's directory to run things in, and what it looks like."""

import hashlib
import os
import sqlite3
import struct


def make_home(home):
    """Fill the new directory `home` with a person's files."""
    for directory in ("data/sub", "runs/1", "empty", "locked"):
        (home / directory).mkdir(parents=True)
    for name in ("notes.txt", "old.txt", "data/a.txt", "data/sub/b.txt", "runs/1/log.txt", "readonly.txt", "best.pt"):
        (home / name).write_text(f"the person's {name}\n" * 3)
    (home / "config.json").write_text("{}")
    (home / "floats.bin").write_bytes(struct.pack("3f", 1, 2, 3))
    (home / "locked" / "old.txt").write_text("in a directory that takes no new names")
    (home / "readonly.txt").chmod(0o444)
    (home / "locked").chmod(0o555)
    (home / "link_to_data").symlink_to("data")
    database = sqlite3.connect(home / "runs.db")
    database.execute("create table runs (name)")
    database.execute("insert into runs values ('first')")
    database.commit()
    database.close()
    return home


def fingerprint(home):
    """Everything about the files below `home` but when they were read: name, kind, mode, times, contents."""
    found = {}
    for directory, names, files in os.walk(home):
        for name in [*names, *files]:
            path = os.path.join(directory, name)
            status = os.lstat(path)
            found[path] = (status.st_mode, status.st_mtime_ns, status.st_ino, _contents(path))
    return found


def _contents(path):
    if os.path.islink(path):
        return os.readlink(path)
    if os.path.isdir(path):
        return None
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()
