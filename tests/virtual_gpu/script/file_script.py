"""A script that does everything to files that scripts do, and prints what it sees. It runs in a `make_home`."""

# Scripts do leave files open, and call io.open.
# ruff: noqa: SIM115, UP020

import contextlib
import csv
import glob
import gzip
import importlib
import io
import json
import logging
import logging.handlers
import os
import pathlib
import pickle
import shelve
import shutil
import sqlite3
import sys
import tarfile
import tempfile
import zipfile
from builtins import open as captured_open
from os import remove as captured_remove

import numpy as np

HERE = os.getcwd()


def show(title, *values):
    print(f"{title}:", *(str(value).replace(HERE, "<home>") for value in values))


def tree(top="."):
    for directory, names, files in os.walk(top):
        names.sort()
        for name in sorted(names + files):
            path = os.path.join(directory, name)
            if os.path.islink(path):
                show("  link", path, os.readlink(path), os.path.exists(path))
            elif os.path.isdir(path):
                show("  dir", path, len(os.listdir(path)))
            else:
                binary = name.endswith((".gz", ".zip", ".db", ".tar", ".shelf"))
                show("  file", path, "binary" if binary else pathlib.Path(path).read_bytes()[:80])


def attempt(title, function, *args, **options):
    try:
        result = function(*args, **options)
        show(title, result.name if isinstance(result, io.IOBase) else result)
    except OSError as error:
        show(title, type(error).__name__, error)
    except ValueError as error:
        show(title, error)


def opens():
    with open("notes.txt") as file:
        show("read", file.read(), file.name)
    with open("notes.txt", "a") as file:
        file.write("appended\n")
        show("append", file.name, file.mode, file.tell())
    with open("notes.txt", "r+") as file:
        file.write("NEW")
    with open(os.path.join(HERE, "notes.txt")) as file:
        show("reread", file.read())
    with open(b"fresh.txt", "w") as file:
        file.write("fresh")
    attempt("x on old", open, "notes.txt", "x")
    attempt("x on new", lambda: open("exclusive.txt", "x").write("only once"))
    attempt("open directory", open, "data", "w")
    attempt("no parent", open, "missing/file.txt", "w")
    attempt("file as parent", open, "notes.txt/file.txt", "w")
    attempt("missing", open, "missing.txt")
    attempt("slash", open, "missing/", "w")
    attempt("slash after file", os.stat, "notes.txt/")
    attempt("remove with slash", os.remove, "notes.txt/")
    attempt("copy to missing", shutil.copy, "notes.txt", "missing/")
    attempt("empty name", open, "")
    attempt("null", open, "a\0b")
    attempt("read only", lambda: oct(os.stat("readonly.txt").st_mode))
    attempt("write to read only", open, "readonly.txt", "a")
    attempt("truncate read only", os.truncate, "readonly.txt", 0)
    os.chmod("data/sub", 0o555)
    attempt("in read only directory", open, "data/sub/new.txt", "x")
    attempt("delete in read only directory", os.remove, "data/sub/b.txt")
    os.chmod("data/sub", 0o755)
    os.chmod("readonly.txt", 0o644)
    attempt("made writable", pathlib.Path("readonly.txt").write_text, "written")
    with open("best.pt", "wb") as file:
        file.write(b"short")
    show("truncated", os.path.getsize("best.pt"), captured_open("best.pt", "rb").read())
    with open("with_opener.txt", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write("opened by the script's opener")
    with io.open("line.txt", "w", encoding="utf-8", newline="\r\n") as file:
        file.write("a\nb\n")
    show("bytes", open("line.txt", "rb").read())
    with open(os.devnull, "w") as file:
        file.write("nothing")


def descriptors():
    descriptor = os.open("raw.bin", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o640)
    os.write(descriptor, b"0123456789")
    os.lseek(descriptor, 0, os.SEEK_SET)
    show("raw", os.read(descriptor, 4), oct(os.fstat(descriptor).st_mode))
    os.ftruncate(descriptor, 6)
    os.close(descriptor)
    show("raw size", os.stat("raw.bin").st_size)
    os.truncate("notes.txt", 5)
    show("truncate", open("notes.txt").read())
    directory = os.open("data", os.O_RDONLY)
    descriptor = os.open("relative.txt", os.O_WRONLY | os.O_CREAT, dir_fd=directory)
    os.write(descriptor, b"below a descriptor")
    os.close(descriptor)
    show("listdir", sorted(os.listdir(directory)), os.stat("relative.txt", dir_fd=directory).st_size)
    os.rename("relative.txt", "renamed.txt", src_dir_fd=directory, dst_dir_fd=directory)
    os.unlink("renamed.txt", dir_fd=directory)
    show("listdir", sorted(entry.name for entry in os.scandir(directory)))
    os.close(directory)
    reading, writing = os.pipe()
    with open(writing, "w") as file:
        file.write("through a pipe")
    show("pipe", open(reading).read())


def names():
    os.replace("fresh.txt", "best.pt")
    show("replaced", open("best.pt").read(), os.path.exists("fresh.txt"))
    os.rename("data", "data.old")
    show("directory renamed", os.path.isdir("data"), sorted(os.listdir("data.old")))
    os.rename("data.old", "data")
    attempt("write in locked", pathlib.Path("locked/new.txt").write_text, "x")
    attempt("change in locked", pathlib.Path("locked/old.txt").write_text, "changed")
    attempt("remove in locked", os.remove, "locked/old.txt")
    os.chmod("locked", 0o700)
    attempt("unlocked", pathlib.Path("locked/new.txt").write_text, "x")
    attempt("rename missing", os.rename, "missing", "other")
    attempt("rename onto directory", os.rename, "notes.txt", "data")
    attempt("rename directory onto file", os.rename, "data", "notes.txt")
    attempt("rename below itself", os.rename, "data", "data/sub/data")
    attempt("rename onto full directory", os.rename, "empty", "data")
    os.mkdir("target")
    os.rename("empty", "target")
    os.link("best.pt", "hard.pt")
    with open("hard.pt", "a") as file:
        file.write(" and linked")
    show("hard link", open("best.pt").read(), os.path.samefile("best.pt", "hard.pt"))
    os.symlink("data", "soft")
    os.symlink(os.path.join(HERE, "notes.txt"), "absolute")
    os.symlink("nowhere.txt", "broken")
    show("links", os.readlink("soft"), sorted(os.listdir("soft")), os.path.lexists("broken"), os.path.exists("broken"))
    with open("broken", "w") as file:
        file.write("made through a broken link")
    show("repaired", open("nowhere.txt").read(), os.path.realpath("broken"))
    with open("soft/through.txt", "w") as file:
        file.write("through a new link")
    show("through", open("data/through.txt").read(), os.path.realpath("soft/through.txt"))
    with open("link_to_data/old_link.txt", "w") as file:
        file.write("through an old link")
    show("old link", open("data/old_link.txt").read())
    attempt("loop", lambda: (os.symlink("loop", "loop"), open("loop")))
    attempt("loop entry", lambda: [entry.is_file() for entry in os.scandir(".") if entry.name == "loop"])
    os.unlink("loop")
    os.utime("link_to_data", (1_000_000_000, 1_000_000_001), follow_symlinks=False)
    os.chown("link_to_data", os.getuid(), os.getgid(), follow_symlinks=False)
    show("old link's time", os.lstat("link_to_data").st_mtime, os.readlink("link_to_data"))
    os.unlink("link_to_data")
    show("link gone", os.path.lexists("link_to_data"), os.path.exists("data"))
    os.mkdir("link_to_data")
    show("now a directory", os.listdir("link_to_data"), os.path.islink("link_to_data"))
    os.chmod("notes.txt", 0o600)
    os.utime("notes.txt", (1_000_000_000, 1_000_000_500))
    status = os.stat("notes.txt")
    show("status", oct(status.st_mode), status.st_mtime, os.access("notes.txt", os.R_OK))
    os.mkfifo("fifo")
    show("fifo", os.path.exists("fifo"), pathlib.Path("fifo").is_fifo())
    os.unlink("fifo")


def deletes():
    os.remove("old.txt")
    show("removed", os.path.exists("old.txt"), "old.txt" in os.listdir("."), glob.glob("old*"))
    attempt("open removed", open, "old.txt")
    attempt("remove removed", os.remove, "old.txt")
    attempt("remove directory", os.remove, "data")
    attempt("rmdir file", os.rmdir, "notes.txt")
    attempt("rmdir full", os.rmdir, "data")
    with open("old.txt", "w") as file:
        file.write("born again")
    show("again", open("old.txt").read())
    captured_remove("old.txt")
    shutil.rmtree("runs")
    show("rmtree", os.path.exists("runs"), os.path.exists("runs/1/log.txt"))
    os.makedirs("runs/1")
    show("made again", os.listdir("runs"), os.listdir("runs/1"))
    attempt("mkdir old", os.mkdir, "runs")
    attempt("makedirs old", os.makedirs, "runs/1")
    os.makedirs("runs/1", exist_ok=True)
    os.removedirs("runs/1")
    attempt("rmtree missing", shutil.rmtree, "runs")


def paths():
    path = pathlib.Path("data") / "pathlib.txt"
    path.write_text("written by pathlib")
    show("pathlib", path.read_text(), path.exists(), path.stat().st_size, path.resolve())
    path.rename("data/moved.txt")
    pathlib.Path("data/moved.txt").replace(path)
    path.touch()
    pathlib.Path("touched").touch()
    attempt("touch twice", pathlib.Path("touched").touch, exist_ok=False)
    show("glob", sorted(map(str, pathlib.Path(".").rglob("*.txt"))), sorted(glob.glob("**/*.txt", recursive=True)))
    path.unlink()
    path.unlink(missing_ok=True)
    attempt("unlink", path.unlink)
    pathlib.Path("a/b/c").mkdir(parents=True)
    show("iterdir", sorted(map(str, pathlib.Path("a").iterdir())), pathlib.Path("a/b/c").is_dir())
    pathlib.Path("a/b/c").rmdir()
    show("owner", pathlib.Path("notes.txt").is_file(), pathlib.Path("~/x").expanduser() != pathlib.Path("~/x"))


def copies():
    shutil.copy("notes.txt", "copied.txt")
    shutil.copy2("notes.txt", "data")
    shutil.copyfile("notes.txt", "data/copyfile.txt")
    attempt("same file", shutil.copyfile, "notes.txt", "notes.txt")
    shutil.copytree("data", "data_copy", symlinks=True)
    shutil.copytree("data", "data_copy", dirs_exist_ok=True)
    attempt("copytree", shutil.copytree, "data", "data_copy")
    shutil.move("copied.txt", "data_copy/")
    shutil.move("data_copy", "moved_tree")
    show("moved", sorted(os.listdir("moved_tree")), os.path.exists("data_copy"))
    shutil.make_archive("archive", "zip", "moved_tree")
    shutil.unpack_archive("archive.zip", "unpacked")
    show("unpacked", sorted(os.listdir("unpacked")))
    shutil.rmtree("moved_tree")
    show("walk", sorted(directory for directory, _, _ in os.walk(".")))
    show("fwalk", sorted((directory, sorted(files)) for directory, _, files, _ in os.fwalk("unpacked")))


def temporaries():
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("temporary")
        file.flush()
        show("temporary", open(file.name).read())
    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(directory, "inside").write_text("x")
        os.symlink(HERE, os.path.join(directory, "home"))
        with open(os.path.join(directory, "home", "from_temporary.txt"), "w") as file:
            file.write("through a link in a temporary directory")
        shutil.move(os.path.join(directory, "inside"), "inside")
    show("moved out", open("inside").read(), open("from_temporary.txt").read(), os.path.exists(directory))
    descriptor, name = tempfile.mkstemp(dir=".", prefix="atomic-")
    os.write(descriptor, b"atomic")
    os.close(descriptor)
    os.replace(name, "config.json")
    show("atomic", open("config.json").read(), glob.glob("atomic-*"))
    with tempfile.TemporaryFile(dir=".") as file:
        file.write(b"unnamed")
    with tempfile.SpooledTemporaryFile(max_size=2) as file:
        file.write(b"rolled over")


def formats():
    with open("table.csv", "w", newline="") as file:
        csv.writer(file).writerows([["step", "loss"], [1, 0.5]])
    show("csv", list(csv.reader(open("table.csv"))))
    json.dump({"a": 1}, open("config.json", "w"))
    show("json", json.load(open("config.json")))
    with gzip.open("log.gz", "wt") as file:
        file.write("zipped")
    show("gzip", gzip.open("log.gz", "rt").read())
    with zipfile.ZipFile("files.zip", "w") as archive:
        archive.write("notes.txt")
    show("zip", zipfile.ZipFile("files.zip").namelist())
    with tarfile.open("files.tar", "w") as archive:
        archive.add("data")
    show("tar", sorted(tarfile.open("files.tar").getnames()))
    pickle.dump([1, 2], open("list.pkl", "wb"))
    show("pickle", pickle.load(open("list.pkl", "rb")))
    handler = logging.FileHandler("train.log")
    logger = logging.getLogger("file_script")
    logger.addHandler(handler)
    logger.warning("logged")
    handler.close()
    show("log", open("train.log").read())
    rotating = logging.handlers.RotatingFileHandler("rotating.log", maxBytes=10, backupCount=2)
    for number in range(3):
        rotating.emit(logging.makeLogRecord({"msg": f"message {number}"}))
    rotating.close()
    show("rotated", sorted(glob.glob("rotating*")))
    with contextlib.closing(sqlite3.connect("runs.db")) as database:
        database.execute("create table if not exists runs (name)")
        database.execute("insert into runs values ('second')")
        database.commit()
    with contextlib.closing(sqlite3.connect(f"file:{HERE}/runs.db?mode=ro", uri=True)) as database:
        show("sqlite", database.execute("select * from runs").fetchall())
    with shelve.open("things.shelf") as shelf:
        shelf["x"] = [1]
    with shelve.open("things.shelf") as shelf:
        show("shelf", dict(shelf))


def arrays():
    np.save("array.npy", np.arange(4))
    np.savez("arrays.zip", a=np.ones(2))
    np.savetxt("array.txt", np.eye(2))
    show("numpy", np.load("array.npy"), np.loadtxt("array.txt"), np.load("array.npy", mmap_mode="r").sum())
    mapped = np.memmap("mapped.bin", dtype=np.uint8, mode="w+", shape=(8,))
    mapped[:] = 7
    mapped.flush()
    show("memmap", open("mapped.bin", "rb").read())
    old = np.memmap("floats.bin", dtype=np.float32, mode="r+")
    old[0] = 9
    old.flush()
    show("old memmap", np.fromfile("floats.bin", dtype=np.float32))
    np.arange(3, dtype=np.uint8).tofile("tofile.bin")
    show("tofile", np.fromfile("tofile.bin", dtype=np.uint8))


def directories():
    os.makedirs("new/place")
    os.chdir("new/place")
    show("cwd", os.getcwd(), os.getcwdb(), pathlib.Path.cwd(), os.path.abspath("x"))
    open("here.txt", "w").write("in a new directory")
    show("here", os.listdir(), os.listdir("."), os.path.exists("../place/here.txt"), open("here.txt").read())
    show("up", os.path.exists("../../notes.txt"), sorted(os.listdir(".."))[:3])
    os.chdir("../../data")
    show("cwd", os.getcwd(), os.path.exists("../new/place/here.txt"))
    open("../beside.txt", "w").write("beside")
    os.chdir(HERE)
    show("beside", open("beside.txt").read())
    show("entries", [(e.name, e.is_dir(), e.is_file(), e.is_symlink()) for e in sorted(os.scandir("."), key=str)])
    show("bytes", sorted(os.listdir(b"data")), sorted(entry.path for entry in os.scandir(b"data")))
    attempt("listdir file", os.listdir, "notes.txt")
    attempt("scandir missing", os.scandir, "missing")
    attempt("chdir missing", os.chdir, "missing")
    attempt("chdir file", os.chdir, "notes.txt")
    show("disk", shutil.disk_usage(".").total > 0, shutil.which("sh") is not None)


def modules():
    pathlib.Path("written_module.py").write_text("value = 42\n")
    os.makedirs("written_package")
    pathlib.Path("written_package/__init__.py").write_text("from written_package.inner import value\n")
    pathlib.Path("written_package/inner.py").write_text("value = 43\n")
    importlib.invalidate_caches()
    import written_module
    import written_package

    show("imported", written_module.value, written_package.value)
    sys.dont_write_bytecode or shutil.rmtree("__pycache__", ignore_errors=True)
    shutil.rmtree("written_package")
    os.remove("written_module.py")


for part in (opens, descriptors, names, deletes, paths, copies, temporaries, formats, arrays, directories, modules):
    print(f"--- {part.__name__}")
    part()
    tree()
