"""A script whose worker processes read and write files; prints what it sees. Its argument is the start method."""

import multiprocessing
import os
import sys
from multiprocessing import shared_memory
from pathlib import Path

with open("starts.txt", "a") as file:
    file.write("started\n")


def work(queue, block):
    shared = shared_memory.SharedMemory(block)
    shared.buf[0] = 7
    shared.close()
    Path("by_worker.txt").write_text(Path("by_parent.txt").read_text() + " and worker")
    os.remove("old.txt")
    queue.put((os.path.exists("notes.txt"), sorted(os.listdir("data")), multiprocessing.current_process().name))


def main():
    context = multiprocessing.get_context(sys.argv[1])
    Path("by_parent.txt").write_text("parent")
    os.remove("notes.txt")
    shared = shared_memory.SharedMemory(create=True, size=1)
    queue = context.Queue()
    process = context.Process(target=work, args=(queue, shared.name), name="worker")
    process.start()
    print(queue.get(timeout=600))
    process.join()
    print(process.exitcode, shared.buf[0], Path("by_worker.txt").read_text(), os.path.exists("old.txt"))
    shared.close()
    shared.unlink()
    with context.Manager() as manager:
        print(manager.list([1, 2]))
    with context.Pool(2) as pool:
        print(pool.map(abs, [-1, 2]))


if __name__ == "__main__":
    main()
