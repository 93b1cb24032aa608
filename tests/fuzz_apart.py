"""A program for the fuzz test: many damaged copies of a file, each read as `apart_program` reads it.

python fuzz_apart.py PROGRAM KIND WANTED FILE NUMBER SEED prints how often which end came. Every copy is
read in a fork that may not write, start programs or open connections: trying to is an end of its own.
"""

import importlib.util
import json
import os
import random
import signal
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

FORBIDDEN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.remove", "os.rename")
#: Ends of a fork.
READ, SENTENCE, FORBIDDEN_ACT = 0, 3, 99


def damaged(raw: bytes, rng: random.Random) -> bytes:
    made = bytearray(raw)
    for _ in range(rng.randint(1, 6)):
        at, length = rng.randint(0, len(made)), rng.choice([0, 1, 2, 8, 40])
        new = rng.choice(
            [rng.randbytes(rng.randint(0, 12)), b"\xff" * 8, b"\0" * 8, b"9" * 9, made[:length]]
        )
        made[at : at + length] = new
    return bytes(made[: rng.randint(0, len(made))] if rng.random() < 0.1 else made)


def watch(event: str, arguments: tuple) -> None:
    writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
    if event in FORBIDDEN or event.startswith("socket.connect") or writes:
        os._exit(FORBIDDEN_ACT)


def flipped(raw: bytes, rng: random.Random) -> bytes:
    made = bytearray(raw)
    for _ in range(rng.randint(1, 3)):
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)


def read_in_fork(module, read, wanted, path: str) -> str:
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        sys.addaudithook(watch)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        try:
            _, parts = read(module, path, wanted)
            end = READ if all(memoryview(part).nbytes >= 0 for part in parts) else 98
        except BaseException:  # what main() makes a sentence of
            end = SENTENCE
        os._exit(end)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return {READ: "read", SENTENCE: "sentence"}.get(
        os.WEXITSTATUS(status), f"status {os.WEXITSTATUS(status)}"
    )


def main() -> None:
    path, kind, wanted, file, number, seed = sys.argv[1:]
    wanted = json.loads(wanted)
    spec = importlib.util.spec_from_file_location("apart_program", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    package, _, read = program.KINDS[kind]
    module = __import__(package)
    warnings.simplefilter("ignore")
    rng, raw = random.Random(int(seed)), Path(file).read_bytes()
    ends: Counter = Counter()
    with tempfile.TemporaryDirectory() as folder:
        copies = []
        for i in range(int(number)):
            copies.append(Path(folder) / f"{i}{Path(file).suffix}")
            copies[-1].write_bytes((damaged if i % 2 else flipped)(raw, rng))
        read(
            module, file, wanted and dict(wanted)
        )  # everything that it imports is there before the forks
        before = sorted(p.name for p in Path(folder).iterdir())
        program.confine(2**29, 600)
        for copy in copies:
            ends[read_in_fork(module, read, wanted, str(copy))] += 1
        assert sorted(p.name for p in Path(folder).iterdir()) == before
    print(json.dumps(ends))


if __name__ == "__main__":
    main()
