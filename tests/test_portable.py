"""Calls that only some systems have stand where something guards them, and nowhere else.

Each place is listed with what guards it. A new call fails here until somebody has guarded it and said
so; one that is gone fails, too, so that the list stays true.
"""

import ast
from pathlib import Path

import pytest

import manyview

SOURCE = Path(manyview.__file__).parent

#: Attributes of modules that Windows, or macOS, lacks.
LACKING = {
    "os": """fork forkpty getuid geteuid getgid getpgid killpg setsid setuid chown chroot mkfifo mknod nice
        sched_getaffinity sched_setaffinity sysconf wait getloadavg uname statvfs symlink link readlink
        fchmod fchown""",
    "signal": """SIGKILL SIGHUP SIGQUIT SIGALRM SIGUSR1 SIGUSR2 SIGCHLD SIGSTOP SIGCONT alarm setitimer
        pthread_kill pause""",
    "select": "poll epoll kqueue",
    "time": "tzset pthread_getcpuclockid",
}
LACKING = {module: set(names.split()) for module, names in LACKING.items()}
MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "posix", "msvcrt", "winreg"}
METHODS = {"symlink_to", "hardlink_to", "readlink"}
FOLDERS = ("/proc", "/sys/", "/dev/", "/tmp", "/etc", "/usr", "/var", "/home", "C:\\")

#: file → what stands there → what guards it.
GUARDED = {
    "engines/threads.py": {"os.sched_getaffinity": "hasattr(os"},
    "io/limits.py": {"/proc": "except (OSError", "/sys/": "except (OSError"},
    "io/writing.py": {
        "import fcntl": "except ImportError",
        "import msvcrt": "except ImportError",
    },
    "io/child.py": {
        "import resource": "except ImportError",
        "/proc": "except OSError",
        "os.killpg": 'os.name == "posix"',
        "signal.SIGKILL": 'os.name == "posix"',
    },
    "app/run/folder.py": {"os.link": "except OSError"},
    "app/web/worker.py": {
        "os.killpg": 'os.name == "posix"',
        "signal.SIGKILL": 'os.name == "posix"',
    },
    "app/processes.py": {
        "import resource": "except ImportError",
        "/proc": "except (OSError",
        "os.sysconf": "except (OSError",  # reached only where /proc was read
    },
    "paper/provenance.py": {"/proc": "except OSError"},
}  # fmt: skip


def docstrings(tree):
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, kinds) and node.body and isinstance(node.body[0], ast.Expr):
            yield node.body[0].value


def special(tree):
    """What of a file not every system has."""
    spoken = set(docstrings(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (f"import {a.name}" for a in node.names if a.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            if node.module in MODULES and node.level == 0:
                yield f"import {node.module}"
            yield from (f"{node.module}.{n}" for n in names & LACKING.get(node.module or "", set()))
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if node.attr in LACKING.get(owner, ()):
                yield f"{owner}.{node.attr}"
            elif node.attr in METHODS and owner not in LACKING:
                yield f".{node.attr}"
        elif isinstance(node, ast.keyword) and node.arg in ("preexec_fn", "pass_fds"):
            yield node.arg
        elif isinstance(node, ast.Constant) and node not in spoken:
            if node.value in ("fork", "forkserver"):
                yield "fork"
            elif isinstance(node.value, str):
                yield from (f for f in FOLDERS if node.value.startswith(f))


def without_encoding(tree):
    """Lines that write or read text in whatever encoding the system likes; ASCII of the kernel's aside."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        text = method in ("read_text", "write_text") or "b" not in (_mode(node) or "b")
        said = {keyword.arg for keyword in node.keywords}
        kernel = any(
            isinstance(part, ast.Constant) and str(part.value).startswith(("/proc", "/sys/"))
            for part in ast.walk(node)
        )
        if text and "encoding" not in said and not kernel:
            yield node.lineno


def _mode(call):
    """Mode of a call of open() or path.open(); None if it is none, or cannot be seen."""
    function, position = call.func, 1
    if isinstance(function, ast.Attribute) and function.attr == "open":
        owner, position = function.value, 0
        if not isinstance(owner, ast.Name) or owner.id in ("os", "zarr", "tarfile", "h5py"):
            return None
    elif not isinstance(function, ast.Name) or function.id != "open":
        return None
    given = [k.value for k in call.keywords if k.arg == "mode"] + call.args[position : position + 1]
    if not given:
        return "r"
    return given[0].value if isinstance(given[0], ast.Constant) else None


def sources():
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")


def test_what_some_systems_lack_is_guarded_and_listed():
    found = {name: set(special(ast.parse(text))) for name, text in sources()}
    listed = {name: set(calls) for name, calls in GUARDED.items()}
    assert {name: calls for name, calls in found.items() if calls} == listed


@pytest.mark.parametrize("name", GUARDED)
def test_the_guards_stand_where_they_are_said_to(name):
    text = (SOURCE / name).read_text(encoding="utf-8")
    assert all(guard in text for guard in GUARDED[name].values())


def test_text_is_written_and_read_in_one_encoding():
    found = {name: list(without_encoding(ast.parse(text))) for name, text in sources()}
    assert {name: lines for name, lines in found.items() if lines} == {}
